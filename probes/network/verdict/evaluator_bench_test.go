package verdict

import "testing"

// BenchmarkEvaluator is the verdict on a round of twelve peers, and what is told them.
func BenchmarkEvaluator(b *testing.B) {
	for name, changes := range map[string][]change{"well": nil, "peers unreachable": {reachOnly(0)}} {
		b.Run(name, func(b *testing.B) {
			s := newScript()
			s.play(20, changes...) // all windows are full
			r := s.well()
			for _, c := range changes {
				c(&r)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.At = r.At.Add(testPeriod)
				s.evaluator.Next(r)
			}
		})
	}
}
