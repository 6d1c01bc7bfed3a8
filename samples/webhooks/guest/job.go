package main

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
)

// job is a hook that was accepted and not delivered yet, as the queue knows it. Its body is in the store alone.
type job struct {
	id string
	record
	state jobState
	order uint64 // in the agenda
}

// jobState says where an open job is.
type jobState uint8

const (
	waiting  jobState = iota // in the agenda, until it is due
	taken                    // a worker has it
	settling                 // it is delivered, and the store does not know it yet; in the agenda if it was told in vain
	moving                   // it becomes a dead letter, or was one
)

func (s jobState) String() string {
	return [...]string{"waiting", "delivering", "delivered", "moving"}[s]
}

// letter is a job that was given up.
type letter struct {
	record
	moving bool // something is being done about it
}

// What stands where. The namespace jobs has open jobs and what was delivered, the namespace dead the dead letters.
const (
	jobPrefix = "job/"
	starts    = "starts" // a counter
)

func jobKey(id string) string  { return jobPrefix + id }
func bodyKey(id string) string { return "body/" + id }
func seenKey(id string) string { return "seen/" + id } // outlives the job: see queueArgs.Remember

var (
	jobsIn = kv.In("jobs")
	// What is only noted there, so that it may be done twice, need not be on the disk before the queue goes on.
	notesIn = kv.Store{Namespace: "jobs", Durability: kv.OS}
	deadIn  = kv.In("dead")
)

// jobID is the same for the same delivery, whenever and however often it comes.
func jobID(source, delivery string) string {
	sum := sha256.Sum256([]byte(source + "\x00" + delivery)) // neither has a zero byte
	return hex.EncodeToString(sum[:16])
}

func validID(id string) bool {
	for i := 0; i < len(id); i++ {
		if c := id[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return len(id) == 32
}

// parseRecord reads what stands under a job's key. An operator can write there, too.
func parseRecord(id string, value []byte) (rec record, ok bool) {
	r := abi.NewReader(value)
	rec.UnmarshalCBOR(r)
	if r.Done() != nil || rec.Attempts < 0 || rec.Round < 0 || rec.Received < 0 || rec.Due < 0 || !validSource(rec.Source) || !validDelivery(rec.Delivery) || len(rec.Kind) > mostKind || jobID(rec.Source, rec.Delivery) != id {
		return record{}, false
	}
	rec.Problem = short(rec.Problem)
	return rec, true
}
