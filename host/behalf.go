package host

// Behalf is the path of the actor on whose behalf Go code has sent the current message, see [OnBehalf], or "".
func (h Head) Behalf() string {
	if h.ctx.env == nil || h.ctx.env.Attached == nil {
		return ""
	}
	return h.ctx.env.Attached.Behalf
}
