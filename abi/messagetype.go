package abi

import "strconv"

// HeaderType is the header in which a message may say what it is: a name, @ and a version, such as
// "bank.payment@3". The host does not read it. The sender claims it, so the recipient must still check the payload.
const HeaderType = "wasmactors.type"

// MaxMessageName bounds the name of a type of message, in bytes.
const MaxMessageName = 96

// ValidMessageName reports whether a name is one of a type of message: 1 to MaxMessageName bytes of
// [A-Za-z0-9_.-], a letter first, and at the end neither . nor -.
func ValidMessageName(name string) bool {
	if len(name) == 0 || len(name) > MaxMessageName || name[len(name)-1] == '.' || name[len(name)-1] == '-' {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
		case i == 0:
			return false
		case c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// CutMessageType splits a value of HeaderType. ok is false if it is not a valid name and a version from 1 to
// 65535 without leading zeros. The name aliases value.
func CutMessageType(value string) (name string, version uint16, ok bool) {
	at := len(value) - 1
	for at >= 0 && value[at] != '@' {
		at--
	}
	if at < 0 || len(value)-at > 6 || at+1 == len(value) || value[at+1] == '0' {
		return "", 0, false
	}
	v := uint32(0)
	for _, c := range []byte(value[at+1:]) {
		if c < '0' || c > '9' {
			return "", 0, false
		}
		v = v*10 + uint32(c-'0')
	}
	if v > 65535 || !ValidMessageName(value[:at]) {
		return "", 0, false
	}
	return value[:at], uint16(v), true
}

// JoinMessageType is the value of HeaderType for a name and a version.
func JoinMessageType(name string, version uint16) string {
	return name + "@" + strconv.Itoa(int(version))
}
