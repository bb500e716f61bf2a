package cluster

import "testing"

const described = `Name:               host
Taints:             node.kubernetes.io/memory-pressure:NoSchedule
                    dedicated=group:NoSchedule
Unschedulable:      false
Conditions:
  Type     Status  LastHeartbeatTime  LastTransitionTime  Reason       Message
  ----     ------  -----------------  ------------------  ------       -------
  Ready    True    Mon, 1 Jan 2001    Mon, 1 Jan 2001     TestKubelet  well
Addresses:
  Hostname:  host
Events:
  Type    Reason  Age   From  Message
`

func TestDescribeIsCutToSectionsAndTimes(t *testing.T) {
	const want = `Taints:             node.kubernetes.io/memory-pressure:NoSchedule
                    dedicated=group:NoSchedule
Conditions:
  Type     Status  Reason       Message
  ----     ------  ------       -------
  Ready    True    TestKubelet  well
Events:
  Type    Reason  Age   From  Message
`
	if got := WithoutTimes(Sections(described, "Taints", "Conditions", "Events")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTimelessKeepsWhatIsConfigured(t *testing.T) {
	for text, want := range map[string]string{
		"since 03:05 UTC; clears after 2 s above 7.5 %": "since …; clears after 2 s above 7.5 %",
		"12 s  1m2s (x2 over 3m4s)  in 9 min":           "…  …  in …",
		"no taint until 2026-11-23 08:06 UTC and later": "no taint until … and later",
		"2026-11-22T08:05:49Z  TaintContested":          "…  TaintContested",
		"available 21.2 GiB of 23.5 GiB (90.2 %) on the root file system, /dev/vda ext4, threshold 10 %; clears after … above 15 %": "available … on …, threshold … %; clears after … above … %",
		"available 70 GiB of 1 TiB (6.8 %) on the root file system, /dev/vda ext4, threshold 51.2 GiB":                              "available … on …, threshold … %",
		"available 70 GiB of 1 TiB (6.8 %) on x, threshold 10 %\navailable 1 GiB of 2 GiB (50.0 %), threshold 5 %":                  "available … on …, threshold … %\navailable 1 GiB of 2 GiB (50.0 %), threshold 5 %",
		"threshold 10 %; 1.12 GiB written in 615 ms; since 03:05 UTC":                                                               "threshold 10 %; since …",
		"available 328 MiB of 16 GiB (2.0 %), threshold 5 %":                                                                        "available 328 MiB of 16 GiB (2.0 %), threshold 5 %",
	} {
		if got := Timeless(text); got != want {
			t.Errorf("Timeless(%q) = %q, want %q", text, got, want)
		}
	}
}
