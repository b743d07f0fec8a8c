"""The rehearsal: a whole session in minutes, for free, on the real engine and a real Kubernetes with a simulated AWS.

`command.py` is the entry point of `rentblock`; `supervisor.py` owns a world; `straight_way.py` is the session that
`rentblock rehearse` runs in it and `proof.py` compares what that session says with what the world counted.
The world: `world.py` (virtual time), `aws/` (moto and what it lacks), `providers/` (Pulumi providers), `kubernetes.py`,
`kubelet.py` and `reuse.py` (a real control plane, simulated nodes, one cluster after the other), `model_server.py`;
assumed: `constants.toml`, `scenarios/`.
Its border: `environment.py` (what a child sees), `mirror.py`, `control.py` (its clock), `target.py`, `reaper.py`.
"""
