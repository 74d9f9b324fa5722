// Wrong: the result is right, and one element is written behind its end.
// At IREE's flow phase, so that the stores are what is written here.
module attributes {stream.affinity.default = #hal.device.affinity<@__device_0>} {
  util.global private @__device_0 = #hal.device.target<"local", [
    #hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {
      cpu = "generic", cpu_features = "", native_vector_size = 16 : i64,
      data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
      target_triple = "x86_64-unknown-unknown-eabi-elf"
    }>]> : !hal.device
  flow.executable private @copy {
    flow.executable.export public @copy workgroups() -> (index, index, index) {
      %count = arith.constant 1001 : index
      %one = arith.constant 1 : index
      flow.return %count, %one, %one : index, index, index
    }
    builtin.module {
      func.func @copy(
          %in: !iree_tensor_ext.dispatch.tensor<readonly:tensor<1000xf32>>,
          %out: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<1000xf32>>) {
        %last = arith.constant 999 : index
        %to = flow.dispatch.workgroup.id[0] : index
        %from = arith.minui %to, %last : index
        %value = iree_tensor_ext.dispatch.tensor.load %in, offsets = [%from], sizes = [1],
            strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<1000xf32>> -> tensor<1xf32>
        iree_tensor_ext.dispatch.tensor.store %value, %out, offsets = [%to], sizes = [1],
            strides = [1] : tensor<1xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<1000xf32>>
        return
      }
    }
  }
  util.func public @task(%a: !hal.buffer_view, %out: !hal.buffer_view) -> !hal.buffer_view
      attributes {iree.abi.stub} {
    %x = hal.tensor.import %a "a" : !hal.buffer_view -> tensor<1000xf32>
    %r = flow.dispatch @copy::@copy(%x) : (tensor<1000xf32>) -> tensor<1000xf32>
    %written = hal.tensor.alias %r : tensor<1000xf32> to %out : !hal.buffer_view
    %view = hal.tensor.export %written "r" : tensor<1000xf32> -> !hal.buffer_view
    util.return %view : !hal.buffer_view
  }
}
