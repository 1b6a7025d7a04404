module.exports = async () => {
  const child = globalThis.preparing;
  // With its children: it leads a process group.
  if (child !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid);
};
