// A convolutional network as exporters write it: torch ops, weights as resources behind the module. Strided first convolution,
// batch normalisation, depthwise and 1x1 convolutions, a residual sum, a strided 1x1 convolution, a mean and a product.
// Exported with iree-turbine 3.9.0 from PyTorch 2.13.0; random weights.
module @module {
  func.func @main(%arg0: !torch.vtensor<[1,3,16,16],f32>) -> !torch.vtensor<[1,4],f32> attributes {torch.assume_strict_symbolic_shapes} {
    %0 = torch.vtensor.literal(dense_resource<torch_tensor_8_3_3_3_torch.float32> : tensor<8x3x3x3xf32>) : !torch.vtensor<[8,3,3,3],f32>
    %none = torch.constant.none
    %int2 = torch.constant.int 2
    %int2_0 = torch.constant.int 2
    %1 = torch.prim.ListConstruct %int2, %int2_0 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1 = torch.constant.int 1
    %int1_1 = torch.constant.int 1
    %2 = torch.prim.ListConstruct %int1, %int1_1 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_2 = torch.constant.int 1
    %int1_3 = torch.constant.int 1
    %3 = torch.prim.ListConstruct %int1_2, %int1_3 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_4 = torch.constant.int 1
    %4 = torch.aten.conv2d %arg0, %0, %none, %1, %2, %3, %int1_4 : !torch.vtensor<[1,3,16,16],f32>, !torch.vtensor<[8,3,3,3],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.int -> !torch.vtensor<[1,8,8,8],f32>
    %5 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %int6 = torch.constant.int 6
    %6 = torch.prims.convert_element_type %5, %int6 : !torch.vtensor<[8],f32>, !torch.int -> !torch.vtensor<[8],f32>
    %7 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_1> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %int6_5 = torch.constant.int 6
    %8 = torch.prims.convert_element_type %7, %int6_5 : !torch.vtensor<[8],f32>, !torch.int -> !torch.vtensor<[8],f32>
    %float1.000000e-05 = torch.constant.float 1.000000e-05
    %int1_6 = torch.constant.int 1
    %9 = torch.aten.add.Scalar %8, %float1.000000e-05, %int1_6 : !torch.vtensor<[8],f32>, !torch.float, !torch.int -> !torch.vtensor<[8],f32>
    %10 = torch.aten.sqrt %9 : !torch.vtensor<[8],f32> -> !torch.vtensor<[8],f32>
    %11 = torch.aten.reciprocal %10 : !torch.vtensor<[8],f32> -> !torch.vtensor<[8],f32>
    %int1_7 = torch.constant.int 1
    %12 = torch.aten.mul.Scalar %11, %int1_7 : !torch.vtensor<[8],f32>, !torch.int -> !torch.vtensor<[8],f32>
    %int-1 = torch.constant.int -1
    %13 = torch.aten.unsqueeze %6, %int-1 : !torch.vtensor<[8],f32>, !torch.int -> !torch.vtensor<[8,1],f32>
    %int-1_8 = torch.constant.int -1
    %14 = torch.aten.unsqueeze %13, %int-1_8 : !torch.vtensor<[8,1],f32>, !torch.int -> !torch.vtensor<[8,1,1],f32>
    %int-1_9 = torch.constant.int -1
    %15 = torch.aten.unsqueeze %12, %int-1_9 : !torch.vtensor<[8],f32>, !torch.int -> !torch.vtensor<[8,1],f32>
    %int-1_10 = torch.constant.int -1
    %16 = torch.aten.unsqueeze %15, %int-1_10 : !torch.vtensor<[8,1],f32>, !torch.int -> !torch.vtensor<[8,1,1],f32>
    %int1_11 = torch.constant.int 1
    %17 = torch.aten.sub.Tensor %4, %14, %int1_11 : !torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,1,1],f32>, !torch.int -> !torch.vtensor<[1,8,8,8],f32>
    %18 = torch.aten.mul.Tensor %17, %16 : !torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,1,1],f32> -> !torch.vtensor<[1,8,8,8],f32>
    %19 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_2> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %int-1_12 = torch.constant.int -1
    %20 = torch.aten.unsqueeze %19, %int-1_12 : !torch.vtensor<[8],f32>, !torch.int -> !torch.vtensor<[8,1],f32>
    %int-1_13 = torch.constant.int -1
    %21 = torch.aten.unsqueeze %20, %int-1_13 : !torch.vtensor<[8,1],f32>, !torch.int -> !torch.vtensor<[8,1,1],f32>
    %22 = torch.aten.mul.Tensor %18, %21 : !torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,1,1],f32> -> !torch.vtensor<[1,8,8,8],f32>
    %23 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_3> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %int-1_14 = torch.constant.int -1
    %24 = torch.aten.unsqueeze %23, %int-1_14 : !torch.vtensor<[8],f32>, !torch.int -> !torch.vtensor<[8,1],f32>
    %int-1_15 = torch.constant.int -1
    %25 = torch.aten.unsqueeze %24, %int-1_15 : !torch.vtensor<[8,1],f32>, !torch.int -> !torch.vtensor<[8,1,1],f32>
    %int1_16 = torch.constant.int 1
    %26 = torch.aten.add.Tensor %22, %25, %int1_16 : !torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,1,1],f32>, !torch.int -> !torch.vtensor<[1,8,8,8],f32>
    %27 = torch.aten.relu %26 : !torch.vtensor<[1,8,8,8],f32> -> !torch.vtensor<[1,8,8,8],f32>
    %28 = torch.vtensor.literal(dense_resource<torch_tensor_8_1_3_3_torch.float32> : tensor<8x1x3x3xf32>) : !torch.vtensor<[8,1,3,3],f32>
    %29 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_4> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %int1_17 = torch.constant.int 1
    %int1_18 = torch.constant.int 1
    %30 = torch.prim.ListConstruct %int1_17, %int1_18 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_19 = torch.constant.int 1
    %int1_20 = torch.constant.int 1
    %31 = torch.prim.ListConstruct %int1_19, %int1_20 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_21 = torch.constant.int 1
    %int1_22 = torch.constant.int 1
    %32 = torch.prim.ListConstruct %int1_21, %int1_22 : (!torch.int, !torch.int) -> !torch.list<int>
    %int8 = torch.constant.int 8
    %33 = torch.aten.conv2d %27, %28, %29, %30, %31, %32, %int8 : !torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,1,3,3],f32>, !torch.vtensor<[8],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.int -> !torch.vtensor<[1,8,8,8],f32>
    %34 = torch.aten.relu6 %33 : !torch.vtensor<[1,8,8,8],f32> -> !torch.vtensor<[1,8,8,8],f32>
    %35 = torch.vtensor.literal(dense_resource<torch_tensor_16_8_1_1_torch.float32> : tensor<16x8x1x1xf32>) : !torch.vtensor<[16,8,1,1],f32>
    %36 = torch.vtensor.literal(dense_resource<torch_tensor_16_torch.float32> : tensor<16xf32>) : !torch.vtensor<[16],f32>
    %int1_23 = torch.constant.int 1
    %int1_24 = torch.constant.int 1
    %37 = torch.prim.ListConstruct %int1_23, %int1_24 : (!torch.int, !torch.int) -> !torch.list<int>
    %int0 = torch.constant.int 0
    %int0_25 = torch.constant.int 0
    %38 = torch.prim.ListConstruct %int0, %int0_25 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_26 = torch.constant.int 1
    %int1_27 = torch.constant.int 1
    %39 = torch.prim.ListConstruct %int1_26, %int1_27 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_28 = torch.constant.int 1
    %40 = torch.aten.conv2d %34, %35, %36, %37, %38, %39, %int1_28 : !torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[16,8,1,1],f32>, !torch.vtensor<[16],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.int -> !torch.vtensor<[1,16,8,8],f32>
    %41 = torch.vtensor.literal(dense_resource<torch_tensor_16_16_1_1_torch.float32> : tensor<16x16x1x1xf32>) : !torch.vtensor<[16,16,1,1],f32>
    %42 = torch.vtensor.literal(dense_resource<torch_tensor_16_torch.float32_1> : tensor<16xf32>) : !torch.vtensor<[16],f32>
    %int2_29 = torch.constant.int 2
    %int2_30 = torch.constant.int 2
    %43 = torch.prim.ListConstruct %int2_29, %int2_30 : (!torch.int, !torch.int) -> !torch.list<int>
    %int0_31 = torch.constant.int 0
    %int0_32 = torch.constant.int 0
    %44 = torch.prim.ListConstruct %int0_31, %int0_32 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_33 = torch.constant.int 1
    %int1_34 = torch.constant.int 1
    %45 = torch.prim.ListConstruct %int1_33, %int1_34 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_35 = torch.constant.int 1
    %46 = torch.aten.conv2d %40, %41, %42, %43, %44, %45, %int1_35 : !torch.vtensor<[1,16,8,8],f32>, !torch.vtensor<[16,16,1,1],f32>, !torch.vtensor<[16],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.int -> !torch.vtensor<[1,16,4,4],f32>
    %int2_36 = torch.constant.int 2
    %int0_37 = torch.constant.int 0
    %int9223372036854775807 = torch.constant.int 9223372036854775807
    %int2_38 = torch.constant.int 2
    %47 = torch.aten.slice.Tensor %40, %int2_36, %int0_37, %int9223372036854775807, %int2_38 : !torch.vtensor<[1,16,8,8],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[1,16,4,8],f32>
    %int3 = torch.constant.int 3
    %int0_39 = torch.constant.int 0
    %int9223372036854775807_40 = torch.constant.int 9223372036854775807
    %int2_41 = torch.constant.int 2
    %48 = torch.aten.slice.Tensor %47, %int3, %int0_39, %int9223372036854775807_40, %int2_41 : !torch.vtensor<[1,16,4,8],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[1,16,4,4],f32>
    %int1_42 = torch.constant.int 1
    %49 = torch.aten.add.Tensor %46, %48, %int1_42 : !torch.vtensor<[1,16,4,4],f32>, !torch.vtensor<[1,16,4,4],f32>, !torch.int -> !torch.vtensor<[1,16,4,4],f32>
    %int2_43 = torch.constant.int 2
    %int3_44 = torch.constant.int 3
    %50 = torch.prim.ListConstruct %int2_43, %int3_44 : (!torch.int, !torch.int) -> !torch.list<int>
    %false = torch.constant.bool false
    %none_45 = torch.constant.none
    %51 = torch.aten.mean.dim %49, %50, %false, %none_45 : !torch.vtensor<[1,16,4,4],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[1,16],f32>
    %52 = torch.vtensor.literal(dense_resource<torch_tensor_4_16_torch.float32> : tensor<4x16xf32>) : !torch.vtensor<[4,16],f32>
    %53 = torch.vtensor.literal(dense_resource<torch_tensor_4_torch.float32> : tensor<4xf32>) : !torch.vtensor<[4],f32>
    %54 = torch.aten.linear %51, %52, %53 : !torch.vtensor<[1,16],f32>, !torch.vtensor<[4,16],f32>, !torch.vtensor<[4],f32> -> !torch.vtensor<[1,4],f32>
    return %54 : !torch.vtensor<[1,4],f32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_8_3_3_3_torch.float32: "0x040000008BDABCBAC56ED33D543222BEDB0711BECCCD97BDC461533D56E479BBFC401C3ED7E88BBC6E96503D293A6EBD9CF21ABDFC443CBEE48302BE0379A2BDB69AE93B09D19B3DDD7DEC3DE29905BEE2A1ABBD58288F3DC5A4233E2D3A22BD0E78133E221DFEBC43D2A63CF270323EA2D036BEEC1FF8BD619047BD88A299BD87442A3EDB78FFBD416FB5BD28AE09BE299138BEFD12E6BD6966293E1CDFAF3D1C07BF3D9AD3253C6511CABD395D053D8F0038BE34650EBE9A30CBBD2EADF83D6317E73D54CCAEBDFC8AE3BB3613FC3DA8E9433E206D9C3D15FBD43CCB21043EBA11E8BDF4E3123DE2C918BEF29508BEE89ACBBD3456B23DB1819E3DF077E9BDC6246E3DE15ED83DF6FCC6BCD7C7F03BADA5363D8C83F43D72393D3EAEDD17BE887090BD6AE69A3D0448233EA57D2B3E94E22D3ED9E01C3D215E2BBEE807913C2093F6BDC0A837BE1F182F3EE0D7153EEC9444BE0C8B133DFCCA04BD34B801BD566BB4BD7091973DFF72E9BDCD7C903D9451C73D76130D3E5D5F933DC90B43BE0CADFFBD86CCC43DB5FC243DF5BA19BEC5F3E2BD7664393EDEC9043E9FDAABBDA06546BD3ABA3BBE7BB262BB8C6714BEAA0218BE15BC2DBC1BB6EC3C4F69A1BD5EDFE93D27D9EFBD7ED0323E210D073E512F26BE7F3044BDB8460E3C4105E63C6CF53A3DBAAB9A3D11DF3C3CA84FC0BD6D80BA3DC2093DBEAC9BE9BD335445BD62FDBFBDEFE189BD9E8521BE9CAD27BDBD7F283D366200BEB1D021BC6A120D3EE211A2BC6E43AF3BE10188BC44881F3DBD9BFA3D3AAC3A3EAE4CFA3D91193B3E9E0964BCFE0731BE0CDABABD6C2F063EF984A3BA9EE7C3BD260417BE656D38BEE85326BE29E41FBDC425D83D4B16D53D3D0F3EBE28DBF53D51351ABE4AA626BDE5CF9FBD7BD517BDACC51ABDFBD630BE21282ABEAAB2F6BC201B233B020CB3BDAD78943D9E5F31BE4FCB54BC644E2D3E01C4A0BD2EF4313E0DBD8E3DD4D831BEB45EF93DE0ECB5BC20F2AFBD38961D3E1C401FBEF52BA93C4D0A25BDB9BA0C3EF60A5C3DA462BD3D7B318B3D728F3DBD56C725BD9C6622BEAE8FD53DE8771C3EE5D6063E14020BBEC6A00C3CACEB0ABE74F7D8BD90AAE5BDD3B1863D35DFEABD729589BB25A5043CFF11FE3DE4F714BE4B4A07BE54DCE4BD63EF093EC2AD8DBDB339263EF0858E3DE4A1C73C2FC6BBBAD9D31BBDDACDC53CA0FF33BD933DB1BA2E28C93C",
      torch_tensor_8_torch.float32: "0x040000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_8_torch.float32_1: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F",
      torch_tensor_8_torch.float32_2: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F",
      torch_tensor_8_torch.float32_3: "0x040000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_8_1_3_3_torch.float32: "0x04000000107F85BE4EE732BEE6CF893E04818ABE2B14C4BC80D4A83EC09AF63D80A01A3CC4E693BEC816293E0B2073BEE0C8C1BDBB0BE5BD4B304ABD56F36E3B64C48C3E56722A3D6BDD983E40CC503EB3CB57BEE316193E864971BE68AA10BEABC9C83D4069E13DF709803EE0C2DBBDABE20B3AF8B92F3EE70CA5BE03C7763ECB208DBEAB8A963B2B2168BD63C533BE2075343DA2208D3E8B8EC7BDC8A54ABE067AFCBDEF27A9BE68131A3E16EE23BE16C963BE83A444BE6E40443EDBC2343E8BFD823E769EF73DB0FBE3BD1BC5BEBD20AEC93D3F4B8C3E9B9CB93D138021BEFE7320BE2C5CA1BE207D933DE08C3FBE8B2998BE52A7953E6BAA5DBE8B521BBD6094C33D2BFD2D3C4EAD65BE1EF489BE1009883E40545E3DDA968D3E8BDBE4BD4B15C93D",
      torch_tensor_8_torch.float32_4: "0x04000000101C9CBD2BDF72BC18E34FBEE6E0E63D00D6D73DAB51E1BB808899BD766852BE",
      torch_tensor_16_8_1_1_torch.float32: "0x04000000AF5D7A3E52C186BE9350143E3B79F3BD0DAC2EBEB113823D42103CBEB8D4A63DE7318E3DAB6786BE9B1D713DED331A3E5E4E0F3EB44A36BDBD6594BE2A3D5FBD457AFB3D811904BE4C6C093EAD1A713E000A3DBED280643BDFB3153EA901E33CDDEEF13C0ED3343DD54E8EBEAA9DE33C6BB37A3E771EA33EDFC9543EA00E423DC313293EDB1F30BE350296BE8FA99BBE2F96B43E7BD1653EDB407ABE1CA50D3E2FB3883E1AF3B43E4A489E3ED43E8C3E5E00A6BDE11BFEBD2FA0943E0CE14A3E05DE59BE50BDA23E0EEC2E3E315C453ED2EA62BED6BCCF3D96D5FDBDCE708D3E784A82BD39F20C3EA99C803D33091A3EB90FF6BD0A85303E9DDF7CBE5789A33DD2F374BE1695B2BE5E5E91BECBE88E3E36E0433ECFD5A93EB804913E93A8A1BE031177BE20FF69BD9E1E6BBEFC657B3E1EDA88BEA2A330BE98E1AEBEBD8B4DBE63E2943E1E36943E9994813E1CC58B3EBFF5A03ECF68B9BD3A4C1F3E9046A13ED389EF3DF3F5B43EAAC63B3E8C0F613EE06BFDBD53B72D3E0767263D16ECACBDB3154CBE59254BBE794A8BBE2B0C733E3AB1803E81D124BDB88151BE2CE98B3E0C85673E594BD73C65EE2ABE8D5DA63E660D143E846B89BE2140AD3E1A76893EB5F503BE8D854B3ED6B44DBE53F262BD28B4993E92586F3C290580BEAF02F2BD1B8CC4BD03B28BBDDC960A3D7B69A73EC5119B3C83895FBEBF72943CC8972D3E",
      torch_tensor_16_torch.float32: "0x04000000F395333EC770A5BE739181BD068686BE077A1ABEAD70023E1C8C80BE5A94063E2FA5993ED3F6BD3C584B71BE88B601BECD1C9E3D8AFE89BE53DD333E8A57A4BE",
      torch_tensor_16_16_1_1_torch.float32: "0x04000000521776BEC0BE78BE68BB4FBD90242C3E724C72BEAEC8543ECCCFCCBDE8F4953D20CA3A3C10D766BEE84E543E6ED7093E80767E3E9655013E48FA28BE48A7553E20235C3C80CCF23DAC444DBEC84393BD545C7BBE906BC7BDA0E85C3D5C0049BE1035A33D2C6C093E18A70E3D0C492BBE5A7B46BEE4F59DBD20BFE03D7A847C3E1A35133EB09FE6BC0084B33DF0267BBE62A65ABE3CE7EE3D960011BE2C52F63DF8B734BE6499FDBD48DD52BE5A97053E60AED0BC9404453E686E1E3EDCA70D3E20B6033C944C9EBD68A65EBD1817083DA4CDFD3DDC5933BEEADA563EE0ADDEBC9A8356BEC4820ABE6A83623E741E6A3EAA206DBE6E8E343EF84B003EF887173E24B6583EA6F809BE5CADA13D0487D13DE84A97BDA857AB3D2C4F93BD60461E3E880E8EBD14DFBEBD40E5803D689AB53D1026FABD300AB53C745C143EF0C4CBBCA8D19B3DB8F976BDB074B33DE67139BE0E8916BE74F101BE4C446B3E64C589BD00F032BACC0FF8BDF08F7F3E0E077A3E601241BE10884FBED40B42BE00089EBAC48282BD4E9027BEE0A3B7BD1877413DF4C105BE88E6623DC8D16ABDB018F8BDC8AE0C3D847F523E88132DBE00323E3C20CFBCBDE4367B3E26E272BED26A75BE30427C3EF8F721BE2053443D40C1B0BC78B657BD48B564BD3CAC223EC0C6433CCE3E79BED82117BE7C8AAEBDCAD2003E8EAA25BE2E63713E281364BD18DF37BD4297483EE6AA003E6A1E593EEE14143E34519BBD54D929BEA06098BC0EE0533E5CD6ABBD1E686DBE24E2D13D6C35793E00C291BD5AF953BE103568BE904E803DF0129BBCD84601BEA8FB4E3DC06FC23D069A4B3EFCC0463EB04619BD7EBB61BED85367BE48066F3E1055E23D402FDF3D207F5DBE5E0F6D3E1485723EDA21673E30F557BE8830C1BD4A1130BE566C723E04FFDBBD84C1E9BD281F063EE8D8ECBDDC2BFCBD4024B3BC50DAC4BC226B47BE466B553EB4DAE1BD309DB53D24AA5E3EE21A013E50FA103DC4D1593E08A7093D54E1ECBD062D723E605C723D38C679BE18C391BDFE602EBEE272603E001C29BDB25969BE80BE80BC74C5203E9004853D8CE5A13D5034BE3C18E2BE3DE87F79BD78ACCBBD0E496FBEB0DA40BEF0E6DD3DBE9417BEE0E8123D106DA33DA001913C40FA25BEF0D1743E26DD14BE668F523E6EA64BBE585276BD8A410B3E7C31D1BD0E0D573E062B30BE44FB56BEE0DEE6BDB087253DA8B66B3EE46DF4BD0C1BB73DAC5C80BD28115EBDD83C3C3E7A6546BE6086D93CA8BE703EC8B50CBDA6C4463E84AC9DBD00124E3EF6A277BE289513BDA8DC33BD78EEA53D24DFC83DA68F443EC88F18BD606D22BCCA4F2F3E90888ABD106B603EAA722ABE209DDDBC00005CBCA075E43D66052F3ED04E22BD4E1754BE28B1FD3DCC27993D88ABCD3D0AEB1DBEAEC2243EC078723E30B5B13CCC1D6FBE",
      torch_tensor_16_torch.float32_1: "0x040000009CB5333EC0CF3DBE98636B3D30CE143D7CA2EFBDB046B23D8AF964BEC839693D9C4A22BE3075DDBC48B7033D08195A3E1C49F4BDBA00243E281502BDBC29F3BD",
      torch_tensor_4_16_torch.float32: "0x04000000BAEC5EBE7CE26ABE28037A3E98627FBD20974C3C3CCF8A3DEE022E3E487D5A3ED29E4F3E84AA3DBEE00F24BD1E7C17BE1C4412BE68E6723D3C4B703E26154DBEAEEE1A3E3CBA04BEE87247BD92344B3E309967BD707BBA3CCCF332BEECEA593E505F04BD683C3BBE3CEB953D3C0536BE4C234BBE6086793CCCF74A3E48E390BD40FBF03D7AFC5B3E78CB293EA24906BE6080E0BC601EA1BD00DB4DBE00A0D838969F403E1AAF573E7014BF3CF092683DE8A7DDBD5A3D413E2C0CD5BDC4D431BE78B01D3D5271193EB4CE66BE6A6A673EAC2EB83D5C5B33BEC8935CBDB8195E3E7E6944BE5CA595BD08EDA73D1C4760BEB8560C3E9C42053ECAC51E3E4A3623BE",
      torch_tensor_4_torch.float32: "0x04000000ECF97E3E38BF17BE3E937F3E46AE75BE"
    }
  }
#-}
