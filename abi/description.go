package abi

// Description is what a module says of itself, in the custom section
// "wasmactors" or through its control block.
type Description struct {
	ABI   uint64   // the version of the contract
	SDK   string   // such as "wasmactors-go/0.1.0"
	Types []string // 1 to MaxTypes, in order of registration
	Needs []string // features without which the module does not work, at most MaxNeeds; all different

	// Diagrams show what actors of a type do, for people: at most MaxTypes, of different types.
	Diagrams []Diagram `json:",omitempty"`

	// Silent are the types whose actors do nothing when they stop or are about to be restarted, all different: the host
	// sends them neither KindStop nor KindPreRestart. Of a type that is not listed nothing is known.
	Silent []string `json:",omitempty"`

	// Saves are the types whose actors answer KindSave, and begin with a State, all different: their state can go over to other
	// code. The host sends KindSave to no others.
	Saves []string `json:",omitempty"`
}

// Diagram is a picture of what the actors of a type do, as a text such as Mermaid reads.
type Diagram struct {
	Type string
	Text string // at most MaxDiagram bytes
}

// FeatureAsks says that the host states the deadlines of questions (HeaderDeadline), and knows
// OpCancelAsk.
const FeatureAsks = "asks"

// FeatureIdentify says that the host answers asks whose path begins with IdentifySign.
const FeatureIdentify = "identify"

// FeatureMailboxes says that the host reads "mailbox" and "dispatcher" in the options of a spawn.
const FeatureMailboxes = "mailboxes"

// FeatureLarge says that the host hands over messages that are larger than the inbox: their payloads are fetched by
// the import fetch. See Envelope.Apart.
const FeatureLarge = "large"

// FeatureEvents says that the host keeps the events of actors, and feeds them back: OpPersist, KindRecover.
const FeatureEvents = "events"

// Features are the names that Needs may hold.
func Features() []string {
	return []string{FeatureAsks, FeatureEvents, FeatureIdentify, FeatureLarge, FeatureMailboxes}
}

// Lacks is the first of the features needed that this version does not have; "" if
// there is none.
func (d *Description) Lacks() string {
	for _, need := range d.Needs {
		if findKey(Features(), []byte(need)) < 0 {
			return need
		}
	}
	return ""
}

// Section is the name of the custom section that may hold the description.
const Section = "wasmactors"

// AppendDescription appends the encoding of d.
func AppendDescription(dst []byte, d *Description) []byte {
	n := uint64(3)
	if len(d.Needs) > 0 {
		n++
	}
	if len(d.Diagrams) > 0 {
		n++
	}
	if len(d.Silent) > 0 {
		n++
	}
	if len(d.Saves) > 0 {
		n++
	}
	dst = appendHead(dst, majorMap, n)
	dst = appendHead(appendText(dst, "abi"), majorUint, d.ABI)
	dst = appendText(appendText(dst, "sdk"), d.SDK)
	dst = appendNames(dst, "types", d.Types)
	if len(d.Needs) > 0 {
		dst = appendNames(dst, "needs", d.Needs)
	}
	if len(d.Diagrams) > 0 {
		dst = appendHead(appendText(dst, "diagrams"), majorMap, uint64(len(d.Diagrams)))
		for i := range d.Diagrams {
			dst = appendText(appendText(dst, d.Diagrams[i].Type), d.Diagrams[i].Text)
		}
	}
	if len(d.Silent) > 0 {
		dst = appendNames(dst, "silent", d.Silent)
	}
	if len(d.Saves) > 0 {
		dst = appendNames(dst, "saves", d.Saves)
	}
	return dst
}

func appendNames(dst []byte, key string, names []string) []byte {
	dst = appendHead(appendText(dst, key), majorArray, uint64(len(names)))
	for _, name := range names {
		dst = appendText(dst, name)
	}
	return dst
}

var descriptionKeys = []string{"abi", "sdk", "types", "needs", "diagrams", "silent", "saves"}

// DecodeDescription reads exactly one description. Unknown keys are stepped
// over. Types must be valid, different names. The error is an *At.
func DecodeDescription(d *Description, src []byte) error {
	*d = Description{}
	r := NewReader(src)
	seen := decodeMap(r, descriptionKeys, func(key int) {
		switch key {
		case 0:
			d.ABI = r.Uint()
		case 1:
			d.SDK = r.Text()
			if len(d.SDK) > MaxName {
				r.Fail(ErrTooLong)
			}
		case 2:
			d.Types = readNames(r, 1, MaxTypes, ErrTypeName)
		case 3:
			d.Needs = readNames(r, 0, MaxNeeds, ErrFeature)
		case 4:
			d.Diagrams = readDiagrams(r)
		case 5:
			d.Silent = readNames(r, 0, MaxTypes, ErrTypeName)
		case 6:
			d.Saves = readNames(r, 0, MaxTypes, ErrTypeName)
		}
	})
	const required = 1<<3 - 1
	if seen&required != required {
		r.Fail(ErrMissing)
	}
	return r.Done()
}

// readNames reads an array of least to most valid, different names.
func readNames(r *Reader, least, most int, invalid *Error) []string {
	n := r.Array()
	if r.err == nil && (n < least || n > most) {
		r.Fail(ErrRange)
	}
	var names []string
	for range n {
		at := r.at
		name := r.TextBytes()
		if r.err == nil && !ValidTypeName(name) {
			r.at, r.err = at, invalid
		}
		for _, t := range names {
			if t == string(name) && r.err == nil {
				r.at, r.err = at, ErrDuplicate
			}
		}
		if r.err != nil {
			return nil
		}
		names = append(names, string(name))
	}
	return names
}

// readDiagrams reads a map of type names to texts.
func readDiagrams(r *Reader) []Diagram {
	n := r.Map()
	if r.err == nil && n > MaxTypes {
		r.Fail(ErrRange)
	}
	var list []Diagram
	for range n {
		at := r.at
		name := r.TextBytes()
		if r.err == nil && !ValidTypeName(name) {
			r.at, r.err = at, ErrTypeName
		}
		for i := range list {
			if list[i].Type == string(name) && r.err == nil {
				r.at, r.err = at, ErrDuplicate
			}
		}
		text := r.TextBytes()
		if r.err == nil && len(text) > MaxDiagram {
			r.Fail(ErrTooLong)
		}
		if r.err != nil {
			return nil
		}
		list = append(list, Diagram{string(name), string(text)})
	}
	return list
}

// Has reports whether the module has an actor type of this name.
func (d *Description) Has(typ string) bool {
	for _, t := range d.Types {
		if t == typ {
			return true
		}
	}
	return false
}
