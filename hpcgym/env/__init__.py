"""The Gymnasium environment: configuration, observations, actions, rewards, rendering."""
