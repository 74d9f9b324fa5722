// A resized image whose source positions begin left of the first pixel, as ONNX says it.
func.func @resized(%x: !torch.vtensor<[1,4,8,8],f32>) -> !torch.vtensor<[1,4,16,16],f32> attributes {torch.onnx_meta.ir_version = 8 : si64, torch.onnx_meta.opset_version = 19 : si64} {
  %none = torch.constant.none
  %by = torch.operator "onnx.Constant"() {torch.onnx.value = dense<[1.0, 1.0, 2.0, 2.0]> : tensor<4xf32>} : () -> !torch.vtensor<[4],f32>
  %r = torch.operator "onnx.Resize"(%x, %none, %by) {torch.onnx.coordinate_transformation_mode = "half_pixel", torch.onnx.mode = "nearest", torch.onnx.nearest_mode = "floor"} : (!torch.vtensor<[1,4,8,8],f32>, !torch.none, !torch.vtensor<[4],f32>) -> !torch.vtensor<[1,4,16,16],f32>
  return %r : !torch.vtensor<[1,4,16,16],f32>
}
