module.exports = async () => {
  const child = globalThis.preparing;
  // With what it started: it leads a group of its own.
  if (child !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid);
};
