"""The Gymnasium environment: wiring, observations, actions, rewards, pictures."""
