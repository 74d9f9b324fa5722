// Kinds of programs in the torch dialect: poolings whose last window hangs over the border, and two tables of
// different lengths that are read at positions.
func.func @pooled(%x: !torch.vtensor<[1,8,12,12],f32>) -> (!torch.vtensor<[1,8,6,6],f32>, !torch.vtensor<[1,8,4,4],f32>) {
  %n0 = torch.constant.int 0
  %n1 = torch.constant.int 1
  %n2 = torch.constant.int 2
  %n3 = torch.constant.int 3
  %yes = torch.constant.bool true
  %no = torch.constant.bool false
  %none = torch.constant.none
  %window = torch.prim.ListConstruct %n3, %n3 : (!torch.int, !torch.int) -> !torch.list<int>
  %two = torch.prim.ListConstruct %n2, %n2 : (!torch.int, !torch.int) -> !torch.list<int>
  %one = torch.prim.ListConstruct %n1, %n1 : (!torch.int, !torch.int) -> !torch.list<int>
  %zero = torch.prim.ListConstruct %n0, %n0 : (!torch.int, !torch.int) -> !torch.list<int>
  %most = torch.aten.max_pool2d %x, %window, %two, %zero, %one, %yes : !torch.vtensor<[1,8,12,12],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool -> !torch.vtensor<[1,8,6,6],f32>
  %mean = torch.aten.avg_pool2d %most, %two, %two, %one, %yes, %no, %none : !torch.vtensor<[1,8,6,6],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.bool, !torch.none -> !torch.vtensor<[1,8,4,4],f32>
  return %most, %mean : !torch.vtensor<[1,8,6,6],f32>, !torch.vtensor<[1,8,4,4],f32>
}

func.func @looked_up(%tokens: !torch.vtensor<[9],si64>, %places: !torch.vtensor<[9],si64>, %words: !torch.vtensor<[700,32],f16>, %angles: !torch.vtensor<[20,32],f16>) -> !torch.vtensor<[9,32],f16> {
  %minus = torch.constant.int -1
  %no = torch.constant.bool false
  %w = torch.aten.embedding %words, %tokens, %minus, %no, %no : !torch.vtensor<[700,32],f16>, !torch.vtensor<[9],si64>, !torch.int, !torch.bool, !torch.bool -> !torch.vtensor<[9,32],f16>
  %a = torch.aten.embedding %angles, %places, %minus, %no, %no : !torch.vtensor<[20,32],f16>, !torch.vtensor<[9],si64>, !torch.int, !torch.bool, !torch.bool -> !torch.vtensor<[9,32],f16>
  %r = torch.aten.mul.Tensor %w, %a : !torch.vtensor<[9,32],f16>, !torch.vtensor<[9,32],f16> -> !torch.vtensor<[9,32],f16>
  return %r : !torch.vtensor<[9,32],f16>
}
