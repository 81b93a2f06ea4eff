/**
 * How the command line finds its server and key: from flags, the environment, profiles or the data
 * folder. Invariant: a key that is stored in a profile or a data folder is sent only to the servers
 * to which it belongs.
 */
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import t from 'tap'
import { connectionOf, workerConnectionOf } from '../../../client/cli/connection/connection.ts'
import { addProfiles } from '../../../client/cli/connection/profile.ts'
import { profileFile, readProfiles, saveProfile } from '../../../client/cli/connection/profiles.ts'

const files = { 'root.key': 'bat_root\n' }

t.test('BATON_PORT names a server on this machine', async (t) => {
  const env = { BATON_PORT: '9000', BATON_DATA: t.testdir(files) }
  t.strictSame(connectionOf({}, env).url, ['http://127.0.0.1:9000'])
  t.equal(connectionOf({}, env).key, 'bat_root')
})

t.test('the owner key of a data folder is sent only to this machine', async (t) => {
  const env = { BATON_DATA: t.testdir(files), BATON_CONFIG: join(t.testdirName, 'none.json') }
  for (const server of ['http://localhost:8080', 'https://[::1]:8443', 'http://127.0.0.2'])
    t.equal(connectionOf({ server }, env).key, 'bat_root', server)
  for (const server of [
    'https://baton.example.org',
    'http://127.0.0.1.example.org',
    'http://10.0.0.1:8080',
    'http://127.0.0.1,http://baton.example.org',
  ])
    t.throws(() => connectionOf({ server }, env), { name: 'Mistake' }, server)
})

t.test('the root key of the environment is sent only to this machine', async (t) => {
  const folder = t.testdir({ with: files, without: {} })
  const env = { BATON_CONFIG: join(folder, 'none.json'), BATON_ROOT_KEY: 'bat_env_root' }
  const without = { ...env, BATON_DATA: join(folder, 'without') }
  t.equal(connectionOf({}, without).key, 'bat_env_root')
  t.equal(connectionOf({}, { ...env, BATON_DATA: join(folder, 'with') }).key, 'bat_root')
  t.equal(connectionOf({}, { ...without, BATON_KEY: 'bat_env' }).key, 'bat_env')
  t.throws(() => connectionOf({ server: 'https://baton.example.org' }, without), {
    name: 'Mistake',
  })
})

t.test('a damaged file of profiles is reported', async (t) => {
  const env = { BATON_CONFIG: join(t.testdir({}), 'profiles.json') }
  for (const text of [
    '{',
    'null',
    '{"profiles": {"a": {}}, "current": "a"}',
    '{"profiles": [5]}',
  ]) {
    writeFileSync(env.BATON_CONFIG, text)
    t.throws(() => connectionOf({}, env), { name: 'Mistake', message: /not a valid file/ }, text)
  }
})

t.test('a profile sends its key only to its own servers', async (t) => {
  const folder = t.testdir(files)
  const env = { BATON_DATA: folder, BATON_CONFIG: join(folder, 'config', 'profiles.json') }
  saveProfile(env, 'work', { server: 'https://a.test,https://b.test', key: 'bat_w', project: 'p' })
  saveProfile(env, 'home', { server: 'http://127.0.0.1:9000', key: 'bat_h' })
  t.equal(readProfiles(env).current, 'work', 'the first profile is the current one')
  t.equal(statSync(profileFile(env)).mode & 0o777, 0o600)
  t.strictSame(connectionOf({}, env), {
    url: ['https://a.test', 'https://b.test'],
    key: 'bat_w',
    project: 'p',
  })
  t.equal(connectionOf({ server: 'https://b.test/' }, env).key, 'bat_w')
  t.throws(() => connectionOf({ server: 'https://c.test' }, env), { name: 'Mistake' })
  t.throws(
    () => connectionOf({ profile: 'work', server: 'https://c.test' }, env),
    { name: 'Mistake' },
    'also when it is named',
  )
  t.equal(connectionOf({ profile: 'home' }, { ...env, BATON_URL: 'https://a.test' }).key, 'bat_h')
  t.equal(connectionOf({}, { ...env, BATON_KEY: 'bat_env' }).key, 'bat_env')
  t.equal(connectionOf({ key: 'bat_flag' }, { ...env, BATON_KEY: 'bat_env' }).key, 'bat_flag')
  t.throws(() => connectionOf({ profile: 'play' }, env), { message: /work, home/ })
})

t.test('profiles are listed in the requested format, without their keys', async (t) => {
  const env = { BATON_CONFIG: join(t.testdir({}), 'profiles.json') }
  const listed = async (...words: string[]) => {
    const printed: string[] = []
    const program = new Command('baton').exitOverride().configureOutput({ writeErr: () => {} })
    addProfiles(program, {
      env,
      print: (text) => printed.push(text),
      note: () => {},
      guarded: (action) => action,
    })
    await program.parseAsync(['profile', 'list', ...words], { from: 'user' })
    return printed.join('\n')
  }
  t.strictSame(JSON.parse(await listed('-o', 'json')), { items: [] })
  saveProfile(env, 'work', { server: 'https://a.example', key: 'bat_12345678', project: 'shop' })
  saveProfile(env, 'home', { server: 'http://127.0.0.1:8080' })
  t.strictSame(JSON.parse(await listed('-o', 'json')), {
    items: [
      {
        name: 'work',
        current: true,
        server: 'https://a.example',
        project: 'shop',
        key_prefix: 'bat_1234…',
      },
      { name: 'home', current: false, server: 'http://127.0.0.1:8080', project: 'default' },
    ],
  })
  t.equal(await listed('-o', 'field=name'), 'work\nhome')
  t.match(await listed(), /^\* work {2}https:\/\/a.example {2}shop {2}bat_1234…\n {2}home /)
  await t.rejects(listed('-o', 'csv'), /Allowed choices/)
})

t.test('a worker may have no key on this machine', async (t) => {
  const folder = t.testdir({ with: files, without: {} })
  const env = { BATON_CONFIG: join(folder, 'none.json'), BATON_DATA: join(folder, 'without') }
  t.strictSame(workerConnectionOf({}, env), { url: ['http://127.0.0.1:8080'], project: 'default' })
  t.throws(() => connectionOf({}, env), { message: /No API key found/ })
  const server = 'https://baton.example.org'
  t.throws(() => workerConnectionOf({ server }, env), { message: /No API key found for https/ })
  t.equal(workerConnectionOf({}, { ...env, BATON_DATA: join(folder, 'with') }).key, 'bat_root')
})
