/** `baton login` and `baton logout`, against a scripted server. */
import { join } from 'node:path'
import { Command } from 'commander'
import t, { type Test } from 'tap'
import { addLogin } from '../../../client/cli/connection/login.ts'
import { readProfiles, saveProfile } from '../../../client/cli/connection/profiles.ts'

type Reply = readonly [status: number, body?: object]
/** Creates a command line whose server gives these answers, in order. */
function scene(t: Test, ...answers: readonly (Reply | Error)[]) {
  const env = { BATON_CONFIG: join(t.testdir({}), 'profiles.json') }
  const left = [...answers]
  const sent: { method: string; url: string; form: Record<string, string> }[] = []
  const pauses: number[] = []
  const notes: string[] = []
  const errors: unknown[] = []
  const run = async (...words: string[]) => {
    const program = new Command('baton')
    addLogin(
      program,
      {
        env,
        print: () => {},
        note: (line) => notes.push(line),
        guarded:
          (action) =>
          (...given) =>
            action(...given).catch((error: unknown) => void errors.push(error)),
      },
      {
        pause: async (ms) => void pauses.push(ms),
        fetch: async (url, init) => {
          const body = typeof init?.body === 'string' ? init.body : ''
          const form = Object.fromEntries(new URLSearchParams(body))
          sent.push({ method: init?.method ?? 'GET', url: String(url), form })
          const answer = left.shift()
          if (!answer || answer instanceof Error) throw answer ?? new Error('nothing more is asked')
          const [status, reply] = answer
          return new Response(reply === undefined ? null : JSON.stringify(reply), { status })
        },
      },
    )
    await program.parseAsync(words, { from: 'user' })
  }
  return { env, run, sent, pauses, notes, errors }
}
const code: Reply = [
  200,
  {
    device_code: 'secret',
    user_code: 'BCDF-GHJK',
    verification_uri: 'https://b.test/device',
    verification_uri_complete: 'https://b.test/device?user_code=BCDF-GHJK',
    expires_in: 600,
    interval: 5,
  },
]
const failed = (error: string): Reply => [400, { error, error_description: `It is ${error}.` }]
const token: Reply = [
  200,
  { access_token: 'batc_1', token_type: 'Bearer', credential_id: 'tok_1', project_handle: 'shop' },
]

t.test('a login shows the code, polls as often as allowed, and stores the token', async (t) => {
  const it = scene(
    t,
    code,
    failed('authorization_pending'),
    failed('slow_down'),
    new Error('connection lost'),
    token,
  )
  await it.run('login', '--server', 'https://b.test', '--profile', 'work', '--label', 'laptop')
  t.strictSame(it.errors, [])
  t.match(it.notes[0], /https:\/\/b\.test\/device\?user_code=BCDF-GHJK\n.*BCDF-GHJK/)
  t.match(it.sent[0], {
    method: 'POST',
    url: 'https://b.test/v1/auth/device/code',
    form: { label: 'laptop', client: 'baton' },
  })
  t.match(it.sent[1], {
    url: 'https://b.test/v1/auth/device/token',
    form: {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: 'secret',
    },
  })
  t.strictSame(it.pauses, [5000, 5000, 10_000, 15_000])
  t.strictSame(readProfiles(it.env), {
    current: 'work',
    profiles: { work: { server: 'https://b.test', key: 'batc_1', project: 'shop' } },
  })
  t.notMatch(it.notes.join('\n'), /batc_1|secret/, 'no secret is shown')
})

t.test('a login ends when it is denied, expires, or is never answered', async (t) => {
  for (const error of ['access_denied', 'expired_token', 'invalid_grant']) {
    const it = scene(t, code, failed(error))
    await it.run('login', '--server', 'https://b.test')
    t.match(it.errors, [{ name: 'Mistake', message: `Sign-in failed: It is ${error}.` }])
    t.strictSame(readProfiles(it.env), { profiles: {} })
  }
  const pending = Array.from({ length: 120 }, () => failed('authorization_pending'))
  const it = scene(t, code, ...pending)
  await it.run('login', '--server', 'https://b.test')
  t.match(it.errors, [{ message: /code expired before it was approved/ }])
  const none = scene(t, [429, { error: 'temporarily_unavailable', error_description: 'Later.' }])
  await none.run('login', '--server', 'https://b.test')
  t.match(none.errors, [{ message: 'https://b.test returned no code: Later.' }])
})

t.test('a logout revokes the token and removes the profile', async (t) => {
  const me: Reply = [
    200,
    { principal: {}, credential: { id: 'tok_1', type: 'cli_token', name: 'laptop' } },
  ]
  const profile = { server: 'https://b.test', key: 'batc_1', project: 'shop' }
  const it = scene(t, me, [204])
  saveProfile(it.env, 'work', profile)
  await it.run('logout')
  t.strictSame(it.errors, [])
  t.match(it.sent, [
    { method: 'GET', url: 'https://b.test/v1/projects/shop/me' },
    { method: 'DELETE', url: 'https://b.test/v1/auth/cli-credentials/tok_1' },
  ])
  t.strictSame(readProfiles(it.env), { profiles: {} })
  const gone = scene(t, [401, { error: { code: 'unauthorized', message: 'No.' } }])
  saveProfile(gone.env, 'work', profile)
  await gone.run('logout', '--profile', 'work')
  t.strictSame(gone.errors, [])
  t.strictSame(readProfiles(gone.env), { profiles: {} }, 'also of a token that was revoked before')
  const key = scene(t, [200, { credential: { id: 'key_1', type: 'api_key', name: 'ci' } }])
  saveProfile(key.env, 'ci', { ...profile, key: 'bat_1' })
  await key.run('logout')
  t.match(key.errors, [{ name: 'Mistake', message: /contains a service key/ }])
  t.ok(readProfiles(key.env).profiles['ci'], 'a key of a service stays')
})

t.test('a login to a server that does not respond names the cause', async (t) => {
  const cause = new Error('connect ECONNREFUSED 127.0.0.1:1')
  const it = scene(t, Object.assign(new TypeError('fetch failed'), { cause }))
  await it.run('login', '--server', 'http://127.0.0.1:1')
  t.match(it.errors, [
    {
      code: 'unreachable',
      message: 'http://127.0.0.1:1 does not respond: connect ECONNREFUSED 127.0.0.1:1',
    },
  ])
})
