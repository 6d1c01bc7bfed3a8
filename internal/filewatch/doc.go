// Package filewatch reports changes of the contents of files.
//
// Events of the operating system are only hints: editors rename and touch files, write them in
// pieces and leave temporary ones beside them, and some file systems report nothing at all. What
// counts is whether the contents of a watched file differ from those at the last check. So a watcher
// waits until the hints are over, compares, and reports differences; and it checks now and then
// without a hint.
package filewatch
