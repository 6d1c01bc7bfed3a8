package main

// A contestant that only copies: a message of ours goes from its sender to where it waits, and from there to its
// receiver. What these two copies take is the floor of a large message between memories that nobody shares.
var copies = &contestant{
	name: "copies", title: "two copies, no actors", version: goVersion,
	opens: map[string]func(*env) (*subject, error){"payload-1k": openCopies, "payload-64k": openCopies, "payload-1m": openCopies},
	lacks: map[string]string{"": "only copies"},
}

func openCopies(e *env) (*subject, error) {
	sender, way, receiver := make([]byte, e.size()), make([]byte, e.size()), make([]byte, e.size())
	return &subject{op: func(n int) error {
		for i := range n {
			sender[0] = byte(i)
			copy(way, sender)
			copy(receiver, way)
			sender, receiver = receiver, sender // whoever has received answers
		}
		return nil
	}}, nil
}
