// Kinds of programs as linalg ops: weights of 4 bits, a softmax over few odd columns, a tensor without rows, a product
// that its author has tiled, layers of one shape with two scales, and a product of unsigned with signed bytes.
#config = #iree_cpu.lowering_config<distribution = [20, 32, 0], vector_common_parallel = [5, 16, 0], vector_reduction = [0, 0, 4]>
#tiled = #iree_codegen.compilation_info<lowering_config = #config, translation_info = <pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
func.func @unpacked(%w: tensor<96x64xi4>, %scale: tensor<96xf32>, %x: tensor<64xf32>) -> tensor<96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<96xf32>) -> tensor<96xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #j, #i], iterator_types = ["parallel", "reduction"]}
    ins(%w, %scale, %x : tensor<96x64xi4>, tensor<96xf32>, tensor<64xf32>) outs(%f : tensor<96xf32>) {
  ^bb0(%q: i4, %s: f32, %a: f32, %sum: f32):
    %wide = arith.extsi %q : i4 to i32
    %number = arith.sitofp %wide : i32 to f32
    %weight = arith.mulf %number, %s : f32
    %term = arith.mulf %weight, %a : f32
    %r = arith.addf %term, %sum : f32
    linalg.yield %r : f32
  } -> tensor<96xf32>
  return %y : tensor<96xf32>
}

func.func @odd(%x: tensor<18x13x5xf32>) -> tensor<18x13x5xf32> {
  %e = tensor.empty() : tensor<18x13x5xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<18x13x5xf32>) outs(%e : tensor<18x13x5xf32>) -> tensor<18x13x5xf32>
  return %y : tensor<18x13x5xf32>
}

func.func @first(%past: tensor<0x24xf32>, %new: tensor<1x24xf32>, %w: tensor<24x40xf32>) -> (tensor<1x24xf32>, tensor<1x40xf32>) {
  %zero = arith.constant 0.0 : f32
  %all = tensor.concat dim(0) %past, %new : (tensor<0x24xf32>, tensor<1x24xf32>) -> tensor<1x24xf32>
  %e = tensor.empty() : tensor<1x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40xf32>) -> tensor<1x40xf32>
  %y = linalg.matmul ins(%all, %w : tensor<1x24xf32>, tensor<24x40xf32>) outs(%f : tensor<1x40xf32>) -> tensor<1x40xf32>
  return %all, %y : tensor<1x24xf32>, tensor<1x40xf32>
}

func.func @configured(%a: tensor<40x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x24xf32>) -> tensor<40x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x64xf32>) -> tensor<40x64xf32>
  %p = linalg.matmul {compilation_info = #tiled} ins(%a, %b : tensor<40x64xf32>, tensor<64x64xf32>) outs(%f : tensor<40x64xf32>) -> tensor<40x64xf32>
  %e2 = tensor.empty() : tensor<40x24xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<40x24xf32>) -> tensor<40x24xf32>
  %q = linalg.matmul ins(%p, %c : tensor<40x64xf32>, tensor<64x24xf32>) outs(%f2 : tensor<40x24xf32>) -> tensor<40x24xf32>
  return %q : tensor<40x24xf32>
}

func.func private @layer(%a: tensor<16x64xi8>, %w: tensor<64x64xi8>, %scale: f32) -> tensor<16x64xi8> {
  %zero = arith.constant 0 : i32
  %low = arith.constant -128.0 : f32
  %high = arith.constant 127.0 : f32
  %e = tensor.empty() : tensor<16x64xi32>
  %o = tensor.empty() : tensor<16x64xi8>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<16x64xi32>) -> tensor<16x64xi32>
  %p = linalg.matmul ins(%a, %w : tensor<16x64xi8>, tensor<64x64xi8>) outs(%f : tensor<16x64xi32>) -> tensor<16x64xi32>
  %q = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<16x64xi32>) outs(%o : tensor<16x64xi8>) {
  ^bb0(%x: i32, %old: i8):
    %real = arith.sitofp %x : i32 to f32
    %scaled = arith.mulf %real, %scale : f32
    %whole = math.roundeven %scaled : f32
    %above = arith.maximumf %whole, %low : f32
    %inside = arith.minimumf %above, %high : f32
    %r = arith.fptosi %inside : f32 to i8
    linalg.yield %r : i8
  } -> tensor<16x64xi8>
  return %q : tensor<16x64xi8>
}
func.func @scaled(%a: tensor<16x64xi8>, %w: tensor<64x64xi8>, %v: tensor<64x64xi8>) -> tensor<16x64xi8> {
  %first = arith.constant 0.021 : f32
  %second = arith.constant 0.034 : f32
  %b = call @layer(%a, %w, %first) : (tensor<16x64xi8>, tensor<64x64xi8>, f32) -> tensor<16x64xi8>
  %c = call @layer(%b, %v, %second) : (tensor<16x64xi8>, tensor<64x64xi8>, f32) -> tensor<16x64xi8>
  return %c : tensor<16x64xi8>
}

func.func @bytes(%a: tensor<24x96xi8>, %b: tensor<40x96xi8>, %scale: tensor<40xf32>) -> tensor<24x40xi8> {
  %zero = arith.constant 0 : i32
  %low = arith.constant 0.0 : f32
  %high = arith.constant 127.0 : f32
  %e = tensor.empty() : tensor<24x40xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<24x40xi32>) -> tensor<24x40xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<24x96xi8>, tensor<40x96xi8>) outs(%f : tensor<24x40xi32>) {
  ^bb0(%x: i8, %y: i8, %sum: i32):
    %u = arith.extui %x : i8 to i32
    %s = arith.extsi %y : i8 to i32
    %m = arith.muli %u, %s : i32
    %r = arith.addi %sum, %m : i32
    linalg.yield %r : i32
  } -> tensor<24x40xi32>
  %o = tensor.empty() : tensor<24x40xi8>
  %q = linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]} ins(%p, %scale : tensor<24x40xi32>, tensor<40xf32>) outs(%o : tensor<24x40xi8>) {
  ^bb0(%x: i32, %k: f32, %old: i8):
    %real = arith.sitofp %x : i32 to f32
    %scaled = arith.mulf %real, %k : f32
    %whole = math.roundeven %scaled : f32
    %above = arith.maximumf %whole, %low : f32
    %inside = arith.minimumf %above, %high : f32
    %r = arith.fptosi %inside : f32 to i8
    linalg.yield %r : i8
  } -> tensor<24x40xi8>
  return %q : tensor<24x40xi8>
}
