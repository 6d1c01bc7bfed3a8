package estimate

// Weights, in steps: nanoseconds on the machine of calibrate_test.go, rounded up.
const (
	stepsModule     = 200_000
	stepsEntry      = 200 // of a section
	stepsTypeValue  = 20
	stepsFunction   = 4_000
	stepsLocal      = 40
	stepsGlobal     = 8 // a global, for each function
	stepsImport     = 2 // an import passed by, for each call of one
	stepsInstr      = 350
	stepsBlock      = 2_000
	stepsReload     = 250 // a global after a call
	stepsPassed     = 700 // a value passed by a branch
	stepsArgument   = 120 // a value passed by a call
	stepsPhi        = 1   // an argument looked at for a parameter of a block
	stepsWalk       = 40  // a block that the search for a local goes back by
	stepsFound      = 150 // a local found in another block
	stepsClimb      = 6   // a block between another and the entry
	stepsPred       = 1   // a predecessor looked at for another
	stepsLive       = 14  // a value alive in a block
	stepsSpill      = 200 // a block between a value's and where it is read again
	stepsBound      = 45  // an address known in a block
	stepsVector     = 500
	stepsBulk       = 25_000
	stepsIndirect   = 30_000
	stepsAddress    = 3_000
	stepsTable      = 5_000
	stepsLabels     = 1 // for each pair of a br_table's
	stepsFill       = 25_000
	stepsDivision   = 7_000
	stepsTruncation = 10_000
	stepsCheck      = 3 // a value that validation compares
	stepsMemory     = 250
)

// Weights, in bytes.
const (
	bytesInstr      = 700
	bytesValue      = 450
	bytesBlock      = 3_000
	bytesLive       = 24
	bytesBound      = 40
	bytesLocal      = 64
	bytesPassed     = 260
	bytesBulk       = 18_000
	bytesDivision   = 3_500
	bytesTruncation = 7_500
	bytesDepth      = 500 // of recursion
	bytesLabel      = 16
	bytesPred       = 48
	outInstr        = 24 // machine code for an instruction
	outPassed       = 16
)
