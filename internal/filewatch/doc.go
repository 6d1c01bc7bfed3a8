// Package filewatch tells when the contents of files change.
//
// What the system says of changes is only a hint to look: editors rename and touch files, write them
// in pieces and leave temporary ones beside them, and some file systems say nothing at all.
// What counts is whether a file that is watched holds something else than when it was
// looked at last. So a watcher waits until the hints are over, compares, and tells what
// is different; and it looks every now and then without a hint.
package filewatch
