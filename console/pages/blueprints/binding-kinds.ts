/** The kinds of records whose changes may change a binding or the drift of a blueprint. */
export const bindingKinds: readonly string[] = [
  ...['action', 'agent', 'blueprint', 'channel', 'environment', 'loop', 'role', 'secret'],
  ...['skill', 'table', 'toolkit', 'webhook', 'workflow'],
]
