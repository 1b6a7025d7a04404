import type { Fault } from './fault.js';

/** Power fails in the middle of writing a journal: half of it stands there, and the machine boots anew. */
export const tornJournals: Fault = {
  name: 'torn-journals',
  about: 'power fails in the middle of writing a journal',
  countsBites: true,
  arrange(stage) {
    stage.nowAndThen(45_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.alive) return;
      const againMs = chance.next() * 60_000;
      node.dieAfter(chance.whole(0, 20), 'torn', () => {
        node.reboot();
        stage.world.clock.after(againMs, () => node.start());
      });
    });
  },
};
