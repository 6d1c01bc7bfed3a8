package main

// What the names of rules in CDDL end with that belong to a message.
const (
	sentSuffix   = ".sent"   // what its writers write
	answerSuffix = ".answer" // what answers it
)
