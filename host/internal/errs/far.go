package errs

// Far is an error of another node: is, with that node's text.
func Far(is error, text string) error {
	if is.Error() == text {
		return is
	}
	return &far{is, text}
}

type far struct {
	is   error
	text string
}

func (e *far) Error() string { return e.text }
func (e *far) Unwrap() error { return e.is }
