"""Tianshou: PPO on jobs, SAC on the price of energy."""

from client import OF_PRICE, check_returns, example, refuse_infinite, report

if __name__ == "__main__":
    made = example("Tianshou")
    refuse_infinite([*made["policy"].parameters(), *made["critic"].parameters()])
    stats, kept = made["stats"], made["buffer"]
    assert stats.train_step == 4_096 and stats.update_step > 0
    check_returns(-kept.info["ratio"][kept.terminated])
    report(f"PPO, 4,096 steps, episodes ended: {stats.train_episode}")
    refuse_infinite(made["sac"].parameters())
    stats, kept = made["sac_stats"], made["price_buffer"]
    assert stats.train_step == 1_024 and stats.update_step > 0
    check_returns(OF_PRICE - kept.info["priced"][kept.terminated], OF_PRICE)
    report(f"SAC on the price, 1,024 steps, episodes ended: {stats.train_episode}")
