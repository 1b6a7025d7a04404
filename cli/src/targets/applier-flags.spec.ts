import { Command } from 'commander';
import { refuseIgnoredFlags } from './applier-flags.js';

/** Parses a command line like `sluice applier`, and refuses what it would ignore. */
function parse(args: readonly string[]): void {
  const command = new Command('applier')
    .option('--node <name>')
    .option('--root <dir>', '', '/')
    .option('--allow-exec')
    .option('--targets <what>')
    .option('--inventory <file>')
    .option('--check-seconds <seconds>', '', '30')
    .exitOverride();
  command.parse(args, { from: 'user' });
  refuseIgnoredFlags(command, command.opts<{ readonly targets?: string }>().targets);
}

it.each([
  ['--node', ['--targets', 'functions', '--node', 'w-1']],
  ['--root', ['--targets', 'functions', '--inventory', 'f', '--root', '/x']],
  ['--allow-exec', ['--targets', 'functions', '--allow-exec']],
])('%s is refused with --targets', (flag, args) => {
  expect(() => parse(args)).toThrow(
    `${flag} is for the applier of one machine, and --targets functions serves many targets: leave it out`,
  );
});

it.each([
  ['--inventory', ['--node', 'w-1', '--inventory', 'f']],
  ['--check-seconds', ['--node', 'w-1', '--check-seconds', '5']],
])('%s is refused without --targets', (flag, args) => {
  expect(() => parse(args)).toThrow(`${flag} is only for targets elsewhere: add --targets WHAT, or leave it out`);
});

it.each([
  [['--node', 'w-1', '--root', '/x']],
  [['--targets', 'functions', '--inventory', 'f', '--check-seconds', '5']],
])('%j is accepted', (args) => {
  expect(() => parse(args)).not.toThrow();
});
