/** UI strings of the definition resolver page. */
import { messages } from '../../text/messages.ts'

export const resolverText = messages('resolver', {
  title: 'Definition resolver',
  hint: 'A service of yours that is asked for the definition of an agent before each turn.',
  source: 'Source of definitions',
  stored: 'this service',
  client: 'the resolver',
  url: 'Address of the resolver',
  urlHint: 'Begins with https://. Query values are kept secret and shown as ***.',
  token: 'Bearer token',
  tokenHint: 'It is stored and never shown. If it is empty, the stored token is kept.',
  tokenSet: 'stored',
  tokenUnset: 'none',
  removeToken: 'Remove the token',
  timeout: 'Time limit of a call in milliseconds',
  revalidate: 'Use a definition without a call for (seconds)',
  revalidateHint: '0: the resolver is asked before every turn.',
  unavailable: 'When the resolver does not answer',
  lastKnown: 'use the last known definition',
  fail: 'fail the turn',
  stale: 'Oldest last known definition (seconds)',
  staleHint: '0: any age.',
  save: 'Save',
  saved: 'Saved.',
  changed: 'Changed',
  oauth: 'Return addresses of OAuth',
  origins: 'Origins',
  originsHint:
    'Sites to which a flow that connects a provider may return: one https origin per ' +
    'line, at most 20.',
})
