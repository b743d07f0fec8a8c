"""The rehearsal: a whole session in minutes, for free, on the real engine and a real Kubernetes with a simulated AWS.

`command.py` is the entry point of `rentblock`, `rehearse.py` its verb; `supervisor.py` owns a world; `straight_way.py`
is the session that is rehearsed in it, and `proof.py` compares what that session says with what the world counted.
The world: `world.py` (virtual time), `barrier.py` (where it stands still), `aws/` (moto and what it lacks),
`engine/` (when engine operations run and how long they take), `providers/` (a fake of pulumi-eks), `registry.py`
(which images exist), `language_host.py` (for `pulumi up` where Pulumi's own is not installed).
Its cluster: `kubernetes.py` and `reuse.py` (a real control plane, one cluster after the other), `nodes.py`,
`kubelet.py` and `model_pod.py` by `cluster_client.py` (simulated nodes and the pod that serves).
Its model: `model_server.py`, `serving_options.py` (what vLLM was told), `key_guard.py`, `model_answers.py`,
`model_knowledge.py`, `model_replies.py`.
Assumed: `constants.toml`, `scenarios/`, read by `delays.py`.
Its border: `environment.py` (what a child sees), `mirror.py`, `control.py` (its clock), `target.py`; `processes.py` and
`reaper.py` (their end).
"""
