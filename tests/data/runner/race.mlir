// Wrong on several threads: 32 workgroups add their row to one sum without synchronisation.
// At IREE's flow phase, so that the workgroups are what is written here.
module attributes {stream.affinity.default = #hal.device.affinity<@__device_0>} {
  util.global private @__device_0 = #hal.device.target<"local", [
    #hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {
      cpu = "generic", cpu_features = "", native_vector_size = 16 : i64,
      data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
      target_triple = "x86_64-unknown-unknown-eabi-elf"
    }>]> : !hal.device
  flow.executable private @sum_rows {
    flow.executable.export public @sum_rows workgroups() -> (index, index, index) {
      %count = arith.constant 32 : index
      %one = arith.constant 1 : index
      flow.return %count, %one, %one : index, index, index
    }
    builtin.module {
      func.func @sum_rows(
          %in: !iree_tensor_ext.dispatch.tensor<readonly:tensor<32x65536xf32>>,
          %out: !iree_tensor_ext.dispatch.tensor<readwrite:tensor<65536xf32>>) {
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %end = arith.constant 65536 : index
        %row = flow.dispatch.workgroup.id[0] : index
        %x = iree_tensor_ext.dispatch.tensor.load %in, offsets = [0, 0], sizes = [32, 65536],
            strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<32x65536xf32>> -> tensor<32x65536xf32>
        %before = iree_tensor_ext.dispatch.tensor.load %out, offsets = [0], sizes = [65536],
            strides = [1] : !iree_tensor_ext.dispatch.tensor<readwrite:tensor<65536xf32>> -> tensor<65536xf32>
        %after = scf.for %i = %zero to %end step %one iter_args(%sums = %before) -> tensor<65536xf32> {
          %value = tensor.extract %x[%row, %i] : tensor<32x65536xf32>
          %sum = tensor.extract %sums[%i] : tensor<65536xf32>
          %more = arith.addf %sum, %value : f32
          %next = tensor.insert %more into %sums[%i] : tensor<65536xf32>
          scf.yield %next : tensor<65536xf32>
        }
        iree_tensor_ext.dispatch.tensor.store %after, %out, offsets = [0], sizes = [65536],
            strides = [1] : tensor<65536xf32> -> !iree_tensor_ext.dispatch.tensor<readwrite:tensor<65536xf32>>
        return
      }
    }
  }
  util.func public @task(%a: !hal.buffer_view, %out: !hal.buffer_view) -> !hal.buffer_view
      attributes {iree.abi.stub} {
    %x = hal.tensor.import %a "a" : !hal.buffer_view -> tensor<32x65536xf32>
    %zero = arith.constant 0.0 : f32
    %filled = flow.tensor.splat %zero : tensor<65536xf32>
    %r = flow.dispatch @sum_rows::@sum_rows(%x, %filled) : (tensor<32x65536xf32>, tensor<65536xf32>) -> %filled
    %written = hal.tensor.alias %r : tensor<65536xf32> to %out : !hal.buffer_view
    %view = hal.tensor.export %written "r" : tensor<65536xf32> -> !hal.buffer_view
    util.return %view : !hal.buffer_view
  }
}
