package decide

// desire decides which taints are to stand on the Node now.
func (s *State) desire(t *turn) {
	for i := range s.conditions {
		s.conditions[i].settleManual(t.policy)
	}
	asked := s.asked(t)
	s.ledger.desired = asked[:0]
	for _, d := range asked {
		d = s.asItStands(t.in.Node, d)
		if held, _ := s.taintGate(t, d); held != "" {
			continue
		}
		s.ledger.desired = append(s.ledger.desired, d)
		if d.manual {
			s.conditions.of(d.Condition).manual = awaiting
		}
	}
}

// asked returns the taints that the rules ask for at the decided levels, and that others
// let stand. Levels add up: at Critical the taint of Degraded stays.
func (s *State) asked(t *turn) []DesiredTaint {
	var all []DesiredTaint
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		dispute, asks := s.letsStand(rule)
		if !asks {
			continue
		}
		if d := place(rule, dispute, t.in.Facts); !isDesired(all, d.Pair) {
			d.Value = s.valueOf(rule, d.Via)
			all = append(all, d)
		}
	}
	for _, rule := range t.policy.Soft {
		if s.conditions.of(rule.Condition).soft.isDesired {
			all = append(all, rule.desired())
		}
	}
	return all
}

// letsStand reports whether a rule asks for its taint at the decided level and others let it
// stand, and returns how far they do.
func (s *State) letsStand(rule *Rule) (dispute, bool) {
	c := s.conditions.of(rule.Condition)
	d := *c.disputeOf(rule.Level)
	held, _ := d.holds()
	return d, held == "" && c.meets(rule)
}
