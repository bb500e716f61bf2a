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
