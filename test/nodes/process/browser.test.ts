/**
 * The modules that browsers receive: exactly the reachable modules, none of which needs Node.js.
 */
import t from 'tap'
import { CHAT } from '../../../gateway/pages/chat.ts'
import { browserModules } from '../../../nodes/browser.ts'

t.test('the chat page reaches only the modules that it needs', async (t) => {
  const modules = browserModules(CHAT)
  const addresses = [...modules.keys()]
  t.equal(addresses[0], '/modules/client/chat/main.ts', 'the entry module comes first')
  for (const address of [
    '/modules/client/transcript/fold.ts',
    '/modules/protocol/sessions/settled.ts',
    '/modules/packages/eventsource-parser/dist/stream.js',
    '/modules/packages/marked/lib/marked.esm.js',
  ])
    t.ok(addresses.includes(address), address)
  const expected = [
    /^\/modules\/client\/(chat\/|transcript|http\.ts|isolate\.ts|watchdog\.ts)/,
    /^\/modules\/protocol\/(sessions\/|artifacts\/reference\.ts|environments\/result-sizes\.ts)/,
    /^\/modules\/protocol\/interactions\/question\.ts$/,
    /^\/modules\/packages\/(eventsource-parser|marked)\//,
  ]
  t.strictSame(
    addresses.filter((address) => !expected.some((pattern) => pattern.test(address))),
    [],
    'no schemas, no server',
  )
  for (const [address, text] of modules) {
    t.not(text, '', address)
    const names = [...text.matchAll(/^\s*(?:import|export)\b[^'"()=;]*["']([^"']+)["']/gm)].map(
      ([, name]) => name ?? '',
    )
    t.strictSame(
      names.filter((name) => !modules.has(name)),
      [],
      `${address} imports what is served`,
    )
    t.notMatch(
      text,
      /\b(require\(|import type |interface |as const\b|process\.)/,
      `${address} is a module without types`,
    )
  }
})

t.test('a missing module is reported', async (t) => {
  t.throws(() => browserModules('client/chat/nowhere.ts'), { code: 'ENOENT' })
})
