//go:build gc && !tinygo

// Structs of generated code, read and written in one function each. Go's compiler turns each branch into a jump
// through a table and keeps arguments and results of calls in memory; here branches are WebAssembly's own.
// This file names no other one, so guests are built with it as with any Go source: see host/build.
//
// The functions call nothing but the write barrier, so nothing else runs meanwhile, the collector least of all.

#define NOSPLIT 4

// R15 is reversed, byte by byte.
#define REVERSE \
	Get R15; \
	I64Const $0x00ff00ff00ff00ff; \
	I64And; \
	I64Const $8; \
	I64Shl; \
	Get R15; \
	I64Const $8; \
	I64ShrU; \
	I64Const $0x00ff00ff00ff00ff; \
	I64And; \
	I64Or; \
	Set R15; \
	Get R15; \
	I64Const $0x0000ffff0000ffff; \
	I64And; \
	I64Const $16; \
	I64Shl; \
	Get R15; \
	I64Const $16; \
	I64ShrU; \
	I64Const $0x0000ffff0000ffff; \
	I64And; \
	I64Or; \
	I64Const $32; \
	I64Rotl; \
	Set R15

// The pointer R14 is stored at R7. While the collector marks (R13) it hears of the pointer and of the one before.
#define STORE_POINTER \
	Get R13; \
	I32WrapI64; \
	If; \
	Call runtime·gcWriteBarrier2(SB); \
	Set R15; \
	MOVD R14, 0(R15); \
	MOVD 0(R7), 8(R15); \
	End; \
	MOVD R14, 0(R7)

// A text (R5 is 0x60) or a byte string (0x40) of at most 255 bytes at R3 is copied to R8, and its pointer and length are
// stored at R7. R10 is its length.
#define STRING \
	Get R3; \
	I32WrapI64; \
	I64Load8U $0; \
	Get R5; \
	I64Sub; \
	Set R10; \
	Get R10; \
	I64Const $24; \
	I64GeU; \
	If; \
	Get R10; \
	I64Const $24; \
	I64Ne; \
	BrIf fail; \
	Get R3; \
	I32WrapI64; \
	I64Load8U $1; \
	Set R10; \
	Get R10; \
	I64Const $24; \
	I64LtU; \
	BrIf fail; \
	Get R3; \
	I64Const $1; \
	I64Add; \
	Set R3; \
	End; \
	Get R3; \
	I64Const $1; \
	I64Add; \
	Set R3; \
	Get R3; \
	Get R10; \
	I64Add; \
	Set R11; \
	Get R11; \
	Get R4; \
	I64GtU; \
	BrIf fail; \
	Get R8; \
	Get R10; \
	I64Add; \
	Get R9; \
	I64GtS; \
	BrIf chunk; \
	Get R8; \
	Set R14; \
	Get R10; \
	I64Eqz; \
	If; \
	MOVD 88(R0), R14; \
	Get R5; \
	I64Const $0x60; \
	I64Eq; \
	If; \
	I64Const $0; \
	Set R14; \
	End; \
	Else; \
	I64Const $0; \
	Set R15; \
	Loop; \
	Get R8; \
	I32WrapI64; \
	Get R3; \
	I32WrapI64; \
	I64Load $0; \
	Set R12; \
	Get R12; \
	I64Store $0; \
	Get R3; \
	I64Const $8; \
	I64Add; \
	Set R3; \
	Get R8; \
	I64Const $8; \
	I64Add; \
	Set R8; \
	Get R3; \
	Get R11; \
	I64LeU; \
	If; \
	Get R15; \
	Get R12; \
	I64Or; \
	Set R15; \
	Get R3; \
	Get R11; \
	I64LtU; \
	BrIf $1; \
	Else; \
	Get R15; \
	Get R12; \
	Get R3; \
	Get R11; \
	I64Sub; \
	I64Const $3; \
	I64Shl; \
	I64Shl; \
	I64Or; \
	Set R15; \
	End; \
	End; \
	Get R5; \
	I64Const $0x60; \
	I64Eq; \
	If; \
	Get R15; \
	I64Const $0x8080808080808080; \
	I64And; \
	I64Eqz; \
	I32Eqz; \
	BrIf fail; \
	End; \
	Get R14; \
	Get R10; \
	I64Add; \
	Set R8; \
	Get R11; \
	Set R3; \
	End; \
	STORE_POINTER; \
	MOVD R10, 8(R7)

// func ReadStruct(r *Reader, m unsafe.Pointer, places *Place) (how Reading)
//
// R0 r
// R1 m
// R2 the place
// R3 what is read next, R4 its end
// R6 texts of a list that are left
// R7 where in m, or in a list, a value goes
// R8 where the next copy goes, R9 where the last one may end
// R13 whether the collector marks
TEXT ·ReadStruct(SB), NOSPLIT, $0-32
	MOVD r+0(FP), R0
	MOVD m+8(FP), R1
	MOVD places+16(FP), R2
	MOVD 0(R0), R3
	MOVD 8(R0), R4

	// No error, eight bytes behind the end, and a small input: see smallInput.
	I64Load 32(R0)
	I64Eqz
	I64Load 16(R0)
	Get R4
	I64Sub
	I64Const $8
	I64GeS
	I32And
	Get R4
	I64Const $256
	I64LeU
	I32And
	I32Eqz
	If
		MOVD $0, how+24(FP)
		RET
	End

	Get R3
	Get R4
	I64Add
	Set R4
	Get R3
	I64Load 24(R0)
	I64Add
	Set R3
	MOVD 88(R0), R9
	I64Load 96(R0)
	Get R9
	I64Add
	Set R8
	I64Load 104(R0)
	Get R9
	I64Add
	I64Const $8
	I64Sub
	Set R9
	MOVD $runtime·writeBarrier(SB), R13
	I64Load32U 0(R13)
	Set R13

list:
	Block
chunk:
	Block
fail:
	Block
next:
	Loop
		MOVD 8(R2), R5
		Get R5
		I64Eqz
		If // that was the last one
			Get R3
			Get R4
			I64GtU
			BrIf fail
			Get R0
			I32WrapI64
			Get R3
			I64Load 0(R0)
			I64Sub
			I64Store $24
			Get R0
			I32WrapI64
			Get R8
			I64Load 88(R0)
			I64Sub
			I64Store $96
			MOVD $2, how+24(FP)
			RET
		End

		// The key, and at least one byte behind it.
		Get R3
		Get R5
		I64Const $32
		I64ShrU
		I64Const $255
		I64And
		I64Add
		Set R11
		Get R11
		Get R4
		I64GeU
		BrIf fail
		I64Load 0(R3)
		I64Load 0(R2)
		I64Xor
		Get R5
		I64Const $56
		I64ShrU
		I64Shl
		I64Eqz
		I32Eqz
		BrIf fail
		Get R11
		Set R3
		Get R5
		I32WrapI64
		I64ExtendI32U
		Get R1
		I64Add
		Set R7
		Get R5
		I64Const $40
		I64ShrU
		I64Const $255
		I64And
		Set R6
		Get R2
		I64Const $16
		I64Add
		Set R2

		Get R6
		I64Const $2
		I64LeU
		If // an integer: 1 without a sign, 2 with one
			I64Load8U 0(R3)
			Set R10
			Get R10
			I64Const $5
			I64ShrU
			Set R14
			Get R14
			Get R6
			I64GeU
			BrIf fail
			Get R10
			I64Const $31
			I64And
			Set R10
			Get R3
			I64Const $1
			I64Add
			Set R3
			Get R10
			I64Const $24
			I64GeU
			If
				Get R10
				I64Const $24
				I64Sub
				Set R11
				Get R11
				I64Const $3
				I64GtU
				BrIf fail
				Get R11
				I64Eqz
				If
					I64Load8U 0(R3)
					Set R10
					Get R10
					I64Const $24
					I64LtU
					BrIf fail
					Get R3
					I64Const $1
					I64Add
					Set R3
				Else
					MOVD 0(R3), R15
					REVERSE
					I64Const $1
					Get R11
					I64Shl
					Set R11 // bytes
					Get R15
					I64Const $64
					Get R11
					I64Const $3
					I64Shl
					I64Sub
					I64ShrU
					Set R10
					Get R10
					Get R11
					I64Const $2
					I64Shl
					I64ShrU
					I64Eqz
					BrIf fail // not in its shortest form
					Get R3
					Get R11
					I64Add
					Set R3
				End
			End
			I64Const $64
			Get R5
			I64Const $48
			I64ShrU
			I64Const $255
			I64And
			Set R11 // bits
			Get R11
			I64Sub
			Set R15
			Get R6
			I64Const $2
			I64Eq
			If
				Get R10
				I64Const $0
				I64LtS
				BrIf fail
				Get R10
				I64Const $0
				Get R14
				I64Sub
				I64Xor
				Set R10
				Get R10
				Get R15
				I64Shl
				Get R15
				I64ShrS
				Get R10
				I64Ne
				BrIf fail
			Else
				Get R10
				Get R15
				I64Shl
				Get R15
				I64ShrU
				Get R10
				I64Ne
				BrIf fail
			End
			Get R11
			I64Const $64
			I64Eq
			If
				MOVD R10, 0(R7)
				Br next
			End
			Get R11
			I64Const $32
			I64Eq
			If
				MOVW R10, 0(R7)
				Br next
			End
			Get R11
			I64Const $16
			I64Eq
			If
				MOVH R10, 0(R7)
				Br next
			End
			MOVB R10, 0(R7)
			Br next
		End

		Get R6
		I64Const $5
		I64GeU
		If
			Get R6
			I64Const $8
			I64Eq
			BrIf next // a key that goes on in the next place
			Get R6
			I64Const $7
			I64Eq
			If // a list of texts
				I64Load8U 0(R3)
				I64Const $0x80
				I64Sub
				Set R6
				Get R6
				I64Const $24
				I64GeU
				BrIf fail
				Get R3
				I64Const $1
				I64Add
				Set R3
				MOVD 112(R0), R14
				Get R14
				I64Eqz
				I64Load 128(R0)
				I64Load 120(R0)
				I64Sub
				Get R6
				I64LtS
				I32Or
				BrIf list
				Get R6
				I64Eqz
				I32Eqz
				If // no pointer behind the end
					Get R14
					I64Load 120(R0)
					I64Const $4
					I64Shl
					I64Add
					Set R14
				End
				STORE_POINTER
				MOVD R6, 8(R7)
				MOVD R6, 16(R7)
				Get R0
				I32WrapI64
				I64Load 120(R0)
				Get R6
				I64Add
				I64Store $120
				Get R14
				Set R7
				I64Const $0x60
				Set R5
text:
				Loop
					Get R6
					I64Eqz
					BrIf next
					STRING
					Get R7
					I64Const $16
					I64Add
					Set R7
					Get R6
					I64Const $1
					I64Sub
					Set R6
					Br text
				End
			End
			// Text is 5, bytes are 6.
			I64Const $0x100
			Get R6
			I64Const $5
			I64Shl
			I64Sub
			Set R5
			STRING
			Get R6
			I64Const $6
			I64Eq
			If
				MOVD R10, 16(R7)
			End
			Br next
		End

		Get R6
		I64Const $3
		I64Eq
		If // a truth value
			I64Load8U 0(R3)
			Set R10
			Get R10
			I64Const $1
			I64Or
			I64Const $0xf5
			I64Ne
			BrIf fail
			Get R10
			I64Const $1
			I64And
			Set R10
			MOVB R10, 0(R7)
			Get R3
			I64Const $1
			I64Add
			Set R3
			Br next
		End

		// a float
		I64Load8U 0(R3)
		I64Const $0xfb
		I64Ne
		BrIf fail
		I64Load 1(R3)
		Set R15
		REVERSE
		MOVD R15, 0(R7)
		Get R3
		I64Const $9
		I64Add
		Set R3
		Br next
	End // next
	End // fail
	MOVD $1, how+24(FP)
	RET
	End // chunk
	MOVD $3, how+24(FP)
	RET
	End // list
	Get R6
	I64Const $8
	I64Shl
	I64Const $4
	I64Or
	Set R6
	MOVD R6, how+24(FP)
	RET

// R10 bytes from R11 go to R3, behind which there is room.
#define COPY \
	Get R10; \
	I64Const $8; \
	I64GeU; \
	If; \
	Get R10; \
	I64Const $64; \
	I64GtU; \
	If; \
	Get R3; \
	I32WrapI64; \
	Get R11; \
	I32WrapI64; \
	Get R10; \
	I32WrapI64; \
	MemoryCopy; \
	Else; \
	Get R11; \
	Get R10; \
	I64Add; \
	I64Const $8; \
	I64Sub; \
	Set R14; \
	Get R3; \
	Set R15; \
	Loop; \
	MOVD 0(R11), 0(R15); \
	Get R11; \
	I64Const $8; \
	I64Add; \
	Set R11; \
	Get R15; \
	I64Const $8; \
	I64Add; \
	Set R15; \
	Get R11; \
	Get R14; \
	I64LtU; \
	BrIf $0; \
	End; \
	Get R3; \
	Get R10; \
	I64Add; \
	Set R15; \
	Get R15; \
	I32WrapI64; \
	I32Const $8; \
	I32Sub; \
	I64Load 0(R14); \
	I64Store $0; \
	End; \
	Get R3; \
	Get R10; \
	I64Add; \
	Set R3; \
	Else; \
	Get R10; \
	I64Const $4; \
	I64And; \
	I64Eqz; \
	I32Eqz; \
	If; \
	MOVW 0(R11), 0(R3); \
	Get R3; \
	I64Const $4; \
	I64Add; \
	Set R3; \
	Get R11; \
	I64Const $4; \
	I64Add; \
	Set R11; \
	End; \
	Get R10; \
	I64Const $2; \
	I64And; \
	I64Eqz; \
	I32Eqz; \
	If; \
	MOVH 0(R11), 0(R3); \
	Get R3; \
	I64Const $2; \
	I64Add; \
	Set R3; \
	Get R11; \
	I64Const $2; \
	I64Add; \
	Set R11; \
	End; \
	Get R10; \
	I64Const $1; \
	I64And; \
	I32WrapI64; \
	If; \
	MOVB 0(R11), 0(R3); \
	Get R3; \
	I64Const $1; \
	I64Add; \
	Set R3; \
	End; \
	End

// The head of the major type R5, in its high bits, with the number R10 goes to R3.
#define HEAD \
	Get R10; \
	I64Const $24; \
	I64LtU; \
	If; \
	Get R3; \
	I32WrapI64; \
	Get R5; \
	Get R10; \
	I64Or; \
	I64Store8 $0; \
	Get R3; \
	I64Const $1; \
	I64Add; \
	Set R3; \
	Else; \
	Get R10; \
	I64Const $256; \
	I64LtU; \
	If; \
	Get R3; \
	I32WrapI64; \
	Get R10; \
	I64Const $8; \
	I64Shl; \
	Get R5; \
	I64Or; \
	I64Const $24; \
	I64Or; \
	I64Store16 $0; \
	Get R3; \
	I64Const $2; \
	I64Add; \
	Set R3; \
	Else; \
	Get R10; \
	I64Const $16; \
	I64ShrU; \
	I64Eqz; \
	I64ExtendI32U; \
	Get R10; \
	I64Const $32; \
	I64ShrU; \
	I64Eqz; \
	I64ExtendI32U; \
	I64Add; \
	Set R14; \
	Get R3; \
	I32WrapI64; \
	Get R5; \
	I64Const $27; \
	I64Or; \
	Get R14; \
	I64Sub; \
	I64Store8 $0; \
	I64Const $8; \
	Get R14; \
	I64ShrU; \
	Set R14; \
	Get R10; \
	I64Const $64; \
	Get R14; \
	I64Const $3; \
	I64Shl; \
	I64Sub; \
	I64Shl; \
	Set R15; \
	REVERSE; \
	MOVD R15, 1(R3); \
	Get R3; \
	Get R14; \
	I64Add; \
	I64Const $1; \
	I64Add; \
	Set R3; \
	End; \
	End

// func WriteStruct(w *Writer, m unsafe.Pointer, places *Place) (ok bool)
//
// R0 w
// R1 m
// R2 the place
// R3 where the next byte goes
// R4 where an entry may begin, and a text end: behind it there are 24 bytes
// R6 texts of a list that are left
// R7 where in m, or in a list, a value is
TEXT ·WriteStruct(SB), NOSPLIT, $0-25
	MOVD w+0(FP), R0
	MOVD m+8(FP), R1
	MOVD places+16(FP), R2
	MOVD 0(R0), R3
	Get R3
	I64Load 16(R0)
	I64Add
	I64Const $24
	I64Sub
	Set R4
	Get R3
	I64Load 8(R0)
	I64Add
	Set R3

full:
	Block
next:
	Loop
		MOVD 8(R2), R5
		Get R5
		I64Eqz
		If // that was the last one
			Get R0
			I32WrapI64
			Get R3
			I64Load 0(R0)
			I64Sub
			I64Store $8
			MOVB $1, ok+24(FP)
			RET
		End
		Get R3
		Get R4
		I64GtS
		BrIf full
		MOVD 0(R2), 0(R3)
		Get R3
		Get R5
		I64Const $32
		I64ShrU
		I64Const $255
		I64And
		I64Add
		Set R3
		Get R5
		I32WrapI64
		I64ExtendI32U
		Get R1
		I64Add
		Set R7
		Get R5
		I64Const $40
		I64ShrU
		I64Const $255
		I64And
		Set R6
		Get R2
		I64Const $16
		I64Add
		Set R2

		Get R6
		I64Const $2
		I64LeU
		If // an integer: 1 without a sign, 2 with one
			Get R5
			I64Const $48
			I64ShrU
			I64Const $255
			I64And
			Set R5
			Get R5
			I64Const $64
			I64Eq
			If
				MOVD 0(R7), R10
			Else
				// All bits that belong to it come to the top, and back.
				Get R5
				I64Const $32
				I64Eq
				If
					I64Load32U 0(R7)
					Set R10
				Else
					Get R5
					I64Const $16
					I64Eq
					If
						I64Load16U 0(R7)
						Set R10
					Else
						I64Load8U 0(R7)
						Set R10
					End
				End
				I64Const $64
				Get R5
				I64Sub
				Set R14
				Get R10
				Get R14
				I64Shl
				Get R14
				I64ShrS
				Get R10
				Get R6
				I64Const $2
				I64Eq
				Select
				Set R10
			End
			I64Const $0
			Set R5
			Get R6
			I64Const $2
			I64Eq
			If
				Get R10
				I64Const $63
				I64ShrS
				Set R14
				Get R14
				I64Const $0x20
				I64And
				Set R5
				Get R10
				Get R14
				I64Xor
				Set R10
			End
			HEAD
			Br next
		End

		Get R6
		I64Const $5
		I64GeU
		If
			Get R6
			I64Const $8
			I64Eq
			BrIf next // a key that goes on in the next place
			Get R6
			I64Const $7
			I64Eq
			If // a list of texts
				MOVD 8(R7), R10
				Get R10
				Set R6
				I64Const $0x80
				Set R5
				HEAD
				MOVD 0(R7), R7
				I64Const $0x60
				Set R5
text:
				Loop
					Get R6
					I64Eqz
					BrIf next
					MOVD 8(R7), R10
					MOVD 0(R7), R11
					Get R3
					Get R10
					I64Add
					Get R4
					I64GtS
					BrIf full
					HEAD
					COPY
					Get R7
					I64Const $16
					I64Add
					Set R7
					Get R6
					I64Const $1
					I64Sub
					Set R6
					Br text
				End
			End
			// Text is 5, bytes are 6.
			I64Const $0x100
			Get R6
			I64Const $5
			I64Shl
			I64Sub
			Set R5
			MOVD 8(R7), R10
			MOVD 0(R7), R11
			Get R3
			Get R10
			I64Add
			Get R4
			I64GtS
			BrIf full
			HEAD
			COPY
			Br next
		End

		Get R6
		I64Const $3
		I64Eq
		If // a truth value
			Get R3
			I32WrapI64
			I64Load8U 0(R7)
			I64Const $0xf4
			I64Add
			I64Store8 $0
			Get R3
			I64Const $1
			I64Add
			Set R3
			Br next
		End

		// a float
		Get R3
		I32WrapI64
		I64Const $0xfb
		I64Store8 $0
		MOVD 0(R7), R15
		REVERSE
		MOVD R15, 1(R3)
		Get R3
		I64Const $9
		I64Add
		Set R3
		Br next
	End // next
	End // full
	MOVB $0, ok+24(FP)
	RET
