package digits

// Head is the last layer as a fine-tuning begins with it: w is Classes×Hidden, b has Classes values.
func (n *Network) Head() (w, b []float32) {
	for k := range n.w2 {
		for _, v := range n.w2[k] {
			w = append(w, float32(v))
		}
		b = append(b, float32(n.b2[k]))
	}
	return w, b
}
