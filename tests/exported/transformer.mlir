// A transformer block as exporters write it: torch ops, weights as resources behind the module. Token embeddings (i64),
// a mask (i1), layer normalisation, attention of two heads, GELU; two results.
// Exported with iree-turbine 3.9.0 from PyTorch 2.13.0; random weights.
module @module {
  func.func @main(%arg0: !torch.vtensor<[1,4],si64>, %arg1: !torch.vtensor<[1,4],i1>) -> (!torch.vtensor<[1,4,8],f32>, !torch.vtensor<[1,8],f32>) attributes {torch.assume_strict_symbolic_shapes} {
    %0 = torch.vtensor.literal(dense_resource<torch_tensor_7_8_torch.float32> : tensor<7x8xf32>) : !torch.vtensor<[7,8],f32>
    %int-1 = torch.constant.int -1
    %false = torch.constant.bool false
    %false_0 = torch.constant.bool false
    %1 = torch.aten.embedding %0, %arg0, %int-1, %false, %false_0 : !torch.vtensor<[7,8],f32>, !torch.vtensor<[1,4],si64>, !torch.int, !torch.bool, !torch.bool -> !torch.vtensor<[1,4,8],f32>
    %2 = torch.vtensor.literal(dense_resource<torch_tensor_4_8_torch.float32> : tensor<4x8xf32>) : !torch.vtensor<[4,8],f32>
    %int1 = torch.constant.int 1
    %3 = torch.aten.add.Tensor %1, %2, %int1 : !torch.vtensor<[1,4,8],f32>, !torch.vtensor<[4,8],f32>, !torch.int -> !torch.vtensor<[1,4,8],f32>
    %int8 = torch.constant.int 8
    %4 = torch.prim.ListConstruct %int8 : (!torch.int) -> !torch.list<int>
    %5 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %6 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_1> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %float1.000000e-05 = torch.constant.float 1.000000e-05
    %false_1 = torch.constant.bool false
    %7 = torch.aten.layer_norm %3, %4, %5, %6, %float1.000000e-05, %false_1 : !torch.vtensor<[1,4,8],f32>, !torch.list<int>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>, !torch.float, !torch.bool -> !torch.vtensor<[1,4,8],f32>
    %8 = torch.vtensor.literal(dense_resource<torch_tensor_24_8_torch.float32> : tensor<24x8xf32>) : !torch.vtensor<[24,8],f32>
    %9 = torch.vtensor.literal(dense_resource<torch_tensor_24_torch.float32> : tensor<24xf32>) : !torch.vtensor<[24],f32>
    %10 = torch.aten.linear %7, %8, %9 : !torch.vtensor<[1,4,8],f32>, !torch.vtensor<[24,8],f32>, !torch.vtensor<[24],f32> -> !torch.vtensor<[1,4,24],f32>
    %int1_2 = torch.constant.int 1
    %int4 = torch.constant.int 4
    %int3 = torch.constant.int 3
    %int2 = torch.constant.int 2
    %int4_3 = torch.constant.int 4
    %11 = torch.prim.ListConstruct %int1_2, %int4, %int3, %int2, %int4_3 : (!torch.int, !torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %12 = torch.aten.view %10, %11 : !torch.vtensor<[1,4,24],f32>, !torch.list<int> -> !torch.vtensor<[1,4,3,2,4],f32>
    %int2_4 = torch.constant.int 2
    %int0 = torch.constant.int 0
    %int3_5 = torch.constant.int 3
    %int1_6 = torch.constant.int 1
    %int4_7 = torch.constant.int 4
    %13 = torch.prim.ListConstruct %int2_4, %int0, %int3_5, %int1_6, %int4_7 : (!torch.int, !torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %14 = torch.aten.permute %12, %13 : !torch.vtensor<[1,4,3,2,4],f32>, !torch.list<int> -> !torch.vtensor<[3,1,2,4,4],f32>
    %int0_8 = torch.constant.int 0
    %int0_9 = torch.constant.int 0
    %int1_10 = torch.constant.int 1
    %int1_11 = torch.constant.int 1
    %15 = torch.aten.slice.Tensor %14, %int0_8, %int0_9, %int1_10, %int1_11 : !torch.vtensor<[3,1,2,4,4],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[1,1,2,4,4],f32>
    %int0_12 = torch.constant.int 0
    %int1_13 = torch.constant.int 1
    %int2_14 = torch.constant.int 2
    %int1_15 = torch.constant.int 1
    %16 = torch.aten.slice.Tensor %14, %int0_12, %int1_13, %int2_14, %int1_15 : !torch.vtensor<[3,1,2,4,4],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[1,1,2,4,4],f32>
    %int0_16 = torch.constant.int 0
    %int2_17 = torch.constant.int 2
    %int3_18 = torch.constant.int 3
    %int1_19 = torch.constant.int 1
    %17 = torch.aten.slice.Tensor %14, %int0_16, %int2_17, %int3_18, %int1_19 : !torch.vtensor<[3,1,2,4,4],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[1,1,2,4,4],f32>
    %int0_20 = torch.constant.int 0
    %18 = torch.aten.squeeze.dim %15, %int0_20 : !torch.vtensor<[1,1,2,4,4],f32>, !torch.int -> !torch.vtensor<[1,2,4,4],f32>
    %int0_21 = torch.constant.int 0
    %19 = torch.aten.squeeze.dim %16, %int0_21 : !torch.vtensor<[1,1,2,4,4],f32>, !torch.int -> !torch.vtensor<[1,2,4,4],f32>
    %int0_22 = torch.constant.int 0
    %20 = torch.aten.squeeze.dim %17, %int0_22 : !torch.vtensor<[1,1,2,4,4],f32>, !torch.int -> !torch.vtensor<[1,2,4,4],f32>
    %int-1_23 = torch.constant.int -1
    %int-2 = torch.constant.int -2
    %21 = torch.aten.transpose.int %19, %int-1_23, %int-2 : !torch.vtensor<[1,2,4,4],f32>, !torch.int, !torch.int -> !torch.vtensor<[1,2,4,4],f32>
    %22 = torch.aten.matmul %18, %21 : !torch.vtensor<[1,2,4,4],f32>, !torch.vtensor<[1,2,4,4],f32> -> !torch.vtensor<[1,2,4,4],f32>
    %float2.000000e00 = torch.constant.float 2.000000e+00
    %23 = torch.aten.div.Scalar %22, %float2.000000e00 : !torch.vtensor<[1,2,4,4],f32>, !torch.float -> !torch.vtensor<[1,2,4,4],f32>
    %int1_24 = torch.constant.int 1
    %24 = torch.aten.unsqueeze %arg1, %int1_24 : !torch.vtensor<[1,4],i1>, !torch.int -> !torch.vtensor<[1,1,4],i1>
    %int2_25 = torch.constant.int 2
    %25 = torch.aten.unsqueeze %24, %int2_25 : !torch.vtensor<[1,1,4],i1>, !torch.int -> !torch.vtensor<[1,1,1,4],i1>
    %26 = torch.prim.ListConstruct  : () -> !torch.list<int>
    %27 = torch.prim.ListConstruct  : () -> !torch.list<int>
    %int6 = torch.constant.int 6
    %int0_26 = torch.constant.int 0
    %cpu = torch.constant.device "cpu"
    %false_27 = torch.constant.bool false
    %28 = torch.aten.empty_strided %26, %27, %int6, %int0_26, %cpu, %false_27 : !torch.list<int>, !torch.list<int>, !torch.int, !torch.int, !torch.Device, !torch.bool -> !torch.vtensor<[],f32>
    %float-1.000000e04 = torch.constant.float -1.000000e+04
    %29 = torch.aten.fill.Scalar %28, %float-1.000000e04 : !torch.vtensor<[],f32>, !torch.float -> !torch.vtensor<[],f32>
    %30 = torch.aten.where.self %25, %23, %29 : !torch.vtensor<[1,1,1,4],i1>, !torch.vtensor<[1,2,4,4],f32>, !torch.vtensor<[],f32> -> !torch.vtensor<[1,2,4,4],f32>
    %int-1_28 = torch.constant.int -1
    %none = torch.constant.none
    %31 = torch.aten.softmax.int %30, %int-1_28, %none : !torch.vtensor<[1,2,4,4],f32>, !torch.int, !torch.none -> !torch.vtensor<[1,2,4,4],f32>
    %32 = torch.aten.matmul %31, %20 : !torch.vtensor<[1,2,4,4],f32>, !torch.vtensor<[1,2,4,4],f32> -> !torch.vtensor<[1,2,4,4],f32>
    %int1_29 = torch.constant.int 1
    %int2_30 = torch.constant.int 2
    %33 = torch.aten.transpose.int %32, %int1_29, %int2_30 : !torch.vtensor<[1,2,4,4],f32>, !torch.int, !torch.int -> !torch.vtensor<[1,4,2,4],f32>
    %int0_31 = torch.constant.int 0
    %34 = torch.aten.clone %33, %int0_31 : !torch.vtensor<[1,4,2,4],f32>, !torch.int -> !torch.vtensor<[1,4,2,4],f32>
    %int1_32 = torch.constant.int 1
    %int4_33 = torch.constant.int 4
    %int8_34 = torch.constant.int 8
    %35 = torch.prim.ListConstruct %int1_32, %int4_33, %int8_34 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %36 = torch.aten._unsafe_view %34, %35 : !torch.vtensor<[1,4,2,4],f32>, !torch.list<int> -> !torch.vtensor<[1,4,8],f32>
    %37 = torch.vtensor.literal(dense_resource<torch_tensor_8_8_torch.float32> : tensor<8x8xf32>) : !torch.vtensor<[8,8],f32>
    %38 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_2> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %39 = torch.aten.linear %36, %37, %38 : !torch.vtensor<[1,4,8],f32>, !torch.vtensor<[8,8],f32>, !torch.vtensor<[8],f32> -> !torch.vtensor<[1,4,8],f32>
    %int1_35 = torch.constant.int 1
    %40 = torch.aten.add.Tensor %3, %39, %int1_35 : !torch.vtensor<[1,4,8],f32>, !torch.vtensor<[1,4,8],f32>, !torch.int -> !torch.vtensor<[1,4,8],f32>
    %int8_36 = torch.constant.int 8
    %41 = torch.prim.ListConstruct %int8_36 : (!torch.int) -> !torch.list<int>
    %42 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_3> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %43 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_4> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %float1.000000e-05_37 = torch.constant.float 1.000000e-05
    %false_38 = torch.constant.bool false
    %44 = torch.aten.layer_norm %40, %41, %42, %43, %float1.000000e-05_37, %false_38 : !torch.vtensor<[1,4,8],f32>, !torch.list<int>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>, !torch.float, !torch.bool -> !torch.vtensor<[1,4,8],f32>
    %45 = torch.vtensor.literal(dense_resource<torch_tensor_16_8_torch.float32> : tensor<16x8xf32>) : !torch.vtensor<[16,8],f32>
    %46 = torch.vtensor.literal(dense_resource<torch_tensor_16_torch.float32> : tensor<16xf32>) : !torch.vtensor<[16],f32>
    %47 = torch.aten.linear %44, %45, %46 : !torch.vtensor<[1,4,8],f32>, !torch.vtensor<[16,8],f32>, !torch.vtensor<[16],f32> -> !torch.vtensor<[1,4,16],f32>
    %str = torch.constant.str "none"
    %48 = torch.aten.gelu %47, %str : !torch.vtensor<[1,4,16],f32>, !torch.str -> !torch.vtensor<[1,4,16],f32>
    %49 = torch.vtensor.literal(dense_resource<torch_tensor_8_16_torch.float32> : tensor<8x16xf32>) : !torch.vtensor<[8,16],f32>
    %50 = torch.vtensor.literal(dense_resource<torch_tensor_8_torch.float32_5> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %51 = torch.aten.linear %48, %49, %50 : !torch.vtensor<[1,4,16],f32>, !torch.vtensor<[8,16],f32>, !torch.vtensor<[8],f32> -> !torch.vtensor<[1,4,8],f32>
    %int1_39 = torch.constant.int 1
    %52 = torch.aten.add.Tensor %40, %51, %int1_39 : !torch.vtensor<[1,4,8],f32>, !torch.vtensor<[1,4,8],f32>, !torch.int -> !torch.vtensor<[1,4,8],f32>
    %int1_40 = torch.constant.int 1
    %53 = torch.prim.ListConstruct %int1_40 : (!torch.int) -> !torch.list<int>
    %false_41 = torch.constant.bool false
    %none_42 = torch.constant.none
    %54 = torch.aten.mean.dim %40, %53, %false_41, %none_42 : !torch.vtensor<[1,4,8],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[1,8],f32>
    return %52, %54 : !torch.vtensor<[1,4,8],f32>, !torch.vtensor<[1,8],f32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_7_8_torch.float32: "0x04000000E127A9BEE947C5BFED43A2BFD7D625BF6991333F353C0EBF4E6DC3BE513935BDE2EB5EBDFAF774BF07F85C3BC05B85BF3AD8E8BD76301DBFB65E5A3F14D21E3E765221BF31590C3F8178853F12F2813EB9ACADBFEFF043BFFA0A56BE1BC687BE4E62B8BB238438BEB3B196BC67827F3FCF9459BF6D7D98BEA545084014B3003F17C0B53F38BEA8BE5CFF373EDD117DBF6CFF42BF9B0FF5BFD0958FBFC5821ABF125D84BEF2051BBF96C240BEC8A8753F470882BFA1C8C3BFFBE59BBF7E485E3FAD91A1BF0593163FF96560BF988384BFB17217BE9D3C8ABF82FD0EBEA8F3A0BF",
      torch_tensor_4_8_torch.float32: "0x0400000012CCDD3C9D88953D961503BED4B512BD48A2F33D711093BC23B33ABE5744A8BBB9C49FBD6D0E20BBF56FC1BDD251F93B8FCFBFBB25499E3D4B14403D22E6D43C076EA13D41BA0B3E2F0C193D8DE3CCBD7B35CBB9E291F23DAEC39A3D6B82033E1CBC91BD521945BC039BFD3D51A1A23C887C9D3A15C9F33C912BB23D90A0CDBC",
      torch_tensor_8_torch.float32: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F",
      torch_tensor_8_torch.float32_1: "0x040000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_24_8_torch.float32: "0x040000003617533E2F78423E5633493EE9D08FBE8515183D337AA83E760C4ABEA508A13EBD50BE3DC0B57E3EC8171BBE00E8263EAF78A0BE15E7B7BC5084F13D9325D93D7B7A973E43E1B13E01AFA43EE711733E20897E3EE4DA3ABDC07A8CBE096606BE8E9322BD0DA443BE4910393EBE2BFE3D9CA9693D9CE8AE3D50049F3EA7DD033E34BE9EBE016683BE84911F3E785A453D3090303EA1C9B4BEA40EA7BEFD025E3E9493673E2BC5A3BEAF6C093E10598DBE5C16893E6335E33D53FDB23ECE7BB2BE5443AEBE6CC6743E91B6A03E57D05D3EB1B1703EA77798BE3606833EACE8AABE95C2A13DDE256DBED4CC0FBE2736803DAC580EBE9A2165BD1593ABBEA4ADAABE8C3D0C3E403E19BEB4425CBEA2DA0EBEE7FE93BEF7B490BE49A2583ED800383E37E6403D61C445BEB7E6F03D081E823C9E5E81BE67D09B3D78D3A43E400DB2BE1401B4BE758B393DC54F883EFC4B5CBE74659F3D03827E3EB03EDF3DB8B29C3D919BB43EBADB6B3ECE9E4BBECC58FA3C9FF4383E86A49F3E221AB4BEBE0B443E0339D2BD0B42B1BEF2B9A03D4B1945BE9E384D3D700D6BBEE93888BE3CC1F5BC773CF3BD60BE533EDFB6F93CD34B8D3EBAB1873DD5D5E8BD9038753EDD449E3C3EE7873D30E1E8BDE64EA63A7B388BBD893CF6BC592C8DBEEE7E0EBB0A4196BE77C59BBD71D1513E63BE7BBE660874BE7CCDB0BD877EC6BD8727753D936A703DAB96373EC26679BE5F65CCBC2D7C4A3E9A939C3ECD45D3BC9E7B51BE2825D03D3D2C4E3E022F62BEB21652BE3C05203EC8EECABCF7F8AABEFFBE50BE8ED1123EE596F5BDBDE3793E5E1A8F3EB5A9523D6006E5BC81D7E5BD4E7492BC16CC833D95458ABE250DADBD729296BEF7335E3E328F66BE7D5EA53E3AA7BABD2B674FBE4FF12D3EBBE3573D23B27A3EE323173E1062AEBE69FC643E925A88BDB80220BE00EA653EDC05843E7B1A9FBE6EF202BD7EA7943E79360C3ED480983EEE23F8BD44B747BE08A99B3EF0E7163E80C6AD3EEA3817BEF97368BE0EBE29BDB571AABE01E90D3E8C84853EDAD1AD3D6E160FBD4680333EF5CD65BEB714B13ED4FEB3BE",
      torch_tensor_24_torch.float32: "0x040000001768ADBEC619ABBD59DD933E65FF103D160A0B3E3CB084BEC507043E61D221BD171D113EE7AF7F3EFD5E1D3E465FF6BC0069B2BC411063BE3CF302BE3A446B3E1F2D11BE25D7603E558F0FBE03A3A8BD2E8FF63B7D1DA6BE435B67BBC4F711BD",
      torch_tensor_8_8_torch.float32: "0x04000000D11802BD01BF90BD27B68E3E0797853ED45F75BE392D283E09FD8DBE0A1B9ABE5E56DD3D1F43AA3BB2E428BE0598AEBE82280CBE6BD7F13D408DA7BEA2DAAFBE27BB373D366882BE64969EBE0F7D0BBE752769BD437EA4BE46BE71BEA0E7BD3C34B2AABE688B4BBDF4C469BE8DFA7ABEDC4A0E3E26548BBEC22E89BEC6764E3EC960873D4CDBA43EE88AC1BDC1DE2EBE870506BDA374EA3AA90D8A3E4A4FB4BE2638CEBC0A26203E595E47BE74F737BE2DF62E3E3673ADBE0593AB3D89248CBEA3F4333E63C79ABE45955E3EDB5BABBEA92898BEFABAAA3B22A48E3E2F069BBEA97D21BE72FC9E3E11DA72BDAFFC153EE923AEBE60B5E3BDD9DA37BE429C983E",
      torch_tensor_8_torch.float32_2: "0x04000000B042163EDD1584BE4B7B693D7F2785BB32C014BE77C04EBEDD46F0BD2AAF8E3E",
      torch_tensor_8_torch.float32_3: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F",
      torch_tensor_8_torch.float32_4: "0x040000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_16_8_torch.float32: "0x040000009EC381BEABF280BE4764DFBD668AC93B3C1AC53D4AD32D3CD14DAEBDB0855BBE50EC81BD68BD11BE3040923EB934B0BEFBED66BE8A4693BE7E5484BD45108D3EA9AB9E3E5C969DBED8F97ABC2381543EF2951F3E0D46943E49AD20BC4C4073BEE77F6F3EF34BF8BD67753B3E6770B2BD88E6193E41D0A23E6352A83E47BDA4BE407B6FBEE4B015BE58DF66BE25B0AD3E73CCFFBCAA2770BE771A21BE33FA47BE3BB5133EF2E49DBE72C8A8BE1C71B2BECBDD1B3EFE02333ECADA60BE408EB33D2EA0853E386B523D913399BD72FCD53C43481BBD4249363E0FD475BE3997373EB30D4C3E9D595BBE55D0933E60CBB13EDDB90EBE5CCFCABD896C343E72D08DBECC2B0F3E41EEA83D2834643E103C9DBE5B6396BE239A223E0569023E977CA8BEF1E449BEF9A0A5BEB8AF81BE0A5A23BEEBCC953ED52090BDF5EF4F3E1EE9AB3E21FE243EE60CA2BEA32F363E14180A3E464D8C3E4C90B2BED9A85E3EFC2B943EFC69A8BEDB83173D06889A3E26A883BE6F95ED3D08FA1F3E03C6BD3DAFFBB33E0637943E704E9B3E008234BDBDD2973EB8B1A8BEDF5D43BED2DD9ABD9317D7BDE434A73ED5C22A3ED015693E1943763EDB3887BE0BBA27BD5877533DBC53BC3D0F2C3A3EC10E10BE9055DABD6377973EBD54C2BDAE7C7BBE047A753E0F28753EF50BE3BDF1C190BD0F9285BE092B97BEFC24083E05A91ABED21B903ECFF190BE",
      torch_tensor_16_torch.float32: "0x04000000DA2B48BD5B25FA3B98113A3E2781923E992C753E345E1F3E6B2C26BE484681BE35F1A1BEA1AB8F3C2C91AF3E768889BD56DC73BCB08B83BE7C4CDE3DC886653E",
      torch_tensor_8_16_torch.float32: "0x04000000FC647CBE5A4134BE069F3D3E6872723DA05E7FBC680C373DE0B01BBD5EEF32BECC366FBE8C5F283E1095F3BC7826BEBDAC2784BDD8A00BBE58A597BD0CC15BBE72933F3E4412D13D361B01BE9CC0AEBDD0B3E53DAC98BDBDDC02873D90F98C3D782621BEBC41803D409C7A3C16965F3E7840B9BD7C9E83BDDC915C3EDA0C51BE00F7933C16A8763E7C90E5BD326C753EC228633EBE2A6E3E306DC3BC0C96673E9C16DFBDA042AFBDB4A7C13D3051583D66200D3E2048733ED24020BEB4DD073E0C4CAB3DB40E073EB8C6F23D1886BFBDC6544ABE04E64C3EF6FA11BEF2AA233E72E073BE882731BD00A72D3B182D313D408BA53C9C55A13DA008E4BC38C87A3D66557D3E34A525BEE0A05FBC3471C3BD3A9F603E6E255B3EC063DFBBD479B1BD7A2C1EBE9A2D373E60088DBC6E1A713EB0FC113EF613603EF8794A3E105C26BE10DD953D2C4ED4BDE672003EA022B8BC904BB13C460D31BE34CB64BE2CCEC03D70F66D3D20E5B13CB2DF2D3E50CCD5BD0CC0B53DB6FE0CBE382C543D18C769BD9C48333E16DE5F3E92575E3E6041383C20F6163E88C77FBE0A2B16BE3803373D00BFB63A8AFA48BEFC9DE2BDB821EFBD96A27DBEC051C33C80832E3E54CDCF3DA044F3BD6E136BBEF0884EBE80F4973B161B303E9058CFBD164D0BBE9A9008BEF04AB1BC921C73BEE2E761BE06017C3E582EF4BD40B138BDACFC88BDC8E560BE",
      torch_tensor_8_torch.float32_5: "0x04000000308634BD54BB9C3DC8E6CFBD20922EBC00BF9CBA68D97EBE160A3A3E32CA4E3E"
    }
  }
#-}
