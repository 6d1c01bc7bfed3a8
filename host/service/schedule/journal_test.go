package schedule

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// unmarked is a record as version 1 has it, and as a guest can make it: without the mark of a file.
func unmarked(payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	return append(binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli)), payload...)
}

// TestPayloadIsNoRecord: a torn write of a payload that holds records itself is cut off like any other.
func TestPayloadIsNoRecord(t *testing.T) {
	dir := t.TempDir()
	w := begin(t, dir, nil, nil)
	w.set("good", Entry{Cron: "0 * * * *", Payload: []byte{0x63, 'a', 'b', 'c'}})
	forged := append(unmarked([]byte("forged")), slices.Concat(unmarked([]byte("another")), make([]byte, 40))...)
	w.set("evil", Entry{Cron: "0 * * * *", Payload: append([]byte{0x58, byte(len(forged))}, forged...)})
	data, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	for cut := headSize; cut <= len(data); cut++ {
		n := 0
		if _, _, err := readRecords(data[:cut], func([]byte) error { n++; return nil }); err != nil || cut == len(data) && n != 2 {
			t.Fatalf("cut at %d of %d: %d records, %v", cut, len(data), n, err)
		}
	}
}

// TestFirstVersion: a journal of version 1 is read, and is of this version from then on.
func TestFirstVersion(t *testing.T) {
	dir := t.TempDir()
	file := []byte(firstHead)
	for i := range 3 {
		file = append(file, unmarked(fmt.Append(nil, "record ", i))...)
	}
	if err := os.WriteFile(filepath.Join(dir, journalName), append(file, 1, 2, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, wantCut := range []int64{3, 0} {
		var got []string
		j, cut, err := openJournal(dir, func(m []byte) { copy(m, "01234567") }, func(b []byte) error { got = append(got, string(b)); return nil })
		if err != nil || cut != wantCut || !slices.Equal(got[:3], []string{"record 0", "record 1", "record 2"}) || len(got) != 3+i {
			t.Fatalf("%q, %d, %v", got, cut, err)
		}
		if err := j.append([]byte("more")).wait(); err != nil {
			t.Error(err)
		}
		if err := j.close(); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil || string(data[:markEnd]) != journalHead+"01234567" {
		t.Errorf("%q, %v", data, err)
	}
}
