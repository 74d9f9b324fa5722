// The compiled module as constant data of the program, from matmul_module to matmul_module_end. For Linux (ELF).
    .section .rodata
    .balign 64 // the runtime reads the module where it lies
    .global matmul_module, matmul_module_end
matmul_module:
    .incbin MODULE
matmul_module_end:

    .section .note.GNU-stack, "", %progbits // no code here needs a stack that can be executed
