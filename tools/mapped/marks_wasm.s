// func marking() (is bool)
TEXT ·marking(SB), 4, $0-1
	MOVD $runtime·writeBarrier(SB), R0
	I64Load32U 0(R0)
	Set R0
	MOVB R0, is+0(FP)
	RET
