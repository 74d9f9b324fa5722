// Attention as PyTorch exports it, 12 heads of 64 features, 128 tokens, f32; the heads lie beside the tokens.
!tokens = !torch.vtensor<[1,128,768],f32>
!rows = !torch.vtensor<[1,128,12,64],f32>
!heads = !torch.vtensor<[1,12,128,64],f32>
func.func @main(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %one = torch.constant.int 1
  %two = torch.constant.int 2
  %length = torch.constant.int 128
  %number = torch.constant.int 12
  %width = torch.constant.int 64
  %all = torch.constant.int 768
  %split = torch.prim.ListConstruct %one, %length, %number, %width
    : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %qr = torch.aten.view %q, %split : !tokens, !torch.list<int> -> !rows
  %kr = torch.aten.view %k, %split : !tokens, !torch.list<int> -> !rows
  %vr = torch.aten.view %v, %split : !tokens, !torch.list<int> -> !rows
  %qh = torch.aten.transpose.int %qr, %one, %two : !rows, !torch.int, !torch.int -> !heads
  %kh = torch.aten.transpose.int %kr, %one, %two : !rows, !torch.int, !torch.int -> !heads
  %vh = torch.aten.transpose.int %vr, %one, %two : !rows, !torch.int, !torch.int -> !heads
  %none = torch.constant.none
  %zero = torch.constant.float 0.0
  %false = torch.constant.bool false
  %attended = torch.aten.scaled_dot_product_attention %qh, %kh, %vh, %none, %zero, %false, %none, %false
    : !heads, !heads, !heads, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> !heads
  %ar = torch.aten.transpose.int %attended, %one, %two : !heads, !torch.int, !torch.int -> !rows
  %joined = torch.prim.ListConstruct %one, %length, %all : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %result = torch.aten.view %ar, %joined : !rows, !torch.list<int> -> !tokens
  return %result : !tokens
}
