/** The settings of environments: providers, aliases, limits, and contradictions between them. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { readConfig } from '../../../nodes/config.ts'

const read = (env: Record<string, string> = {}) => readConfig(env, [])
const environments = (env?: Record<string, string>) => {
  const found = read(env)
  if ('faults' in found) throw new Error(found.faults.join('\n'))
  return found.config.environments
}
const faults = (env: Record<string, string>) => {
  const found = read(env)
  return 'faults' in found ? found.faults : []
}

t.test('by default, the provider local runs with limits', async (t) => {
  t.strictSame(environments(), {
    providers: ['local'],
    default_provider: 'local',
    aliases: { sprites: 'local', cloudflare_containers: 'local' },
    http_providers: [],
    docker: { socket: '/var/run/docker.sock', image: 'docker.io/library/node:22-bookworm' },
    unsafe_local: false,
    limits: {
      memory_bytes: 2 * 2 ** 30,
      cpus: 2,
      disk_bytes: 10 * 2 ** 30,
      processes: 512,
    },
    wake_ms: 30_000,
    provision_ms: 300_000,
    retain_ms: 7 * 24 * 3_600_000,
    host: { environments: 100, operations: 8 },
  })
})

t.test('the example of HTTP providers in the documentation is accepted', async (t) => {
  const text = readFileSync('docs/operations/providers.md', 'utf8')
  const [, example = ''] = /^```json\n(\[[\s\S]*?)^```/m.exec(text) ?? []
  t.strictSame(faults({ BATON_HTTP_PROVIDERS: example, BATON_PROVIDERS: 'cloud' }), [])
  const spaces = example.replace(/"secret": "[^"]*"/, '"secret": "at least 16 characters"')
  t.match(faults({ BATON_HTTP_PROVIDERS: spaces }), [/secret: must be .* without spaces/])
})

t.test('providers, aliases and HTTP providers are parsed', async (t) => {
  const cloud = { name: 'cloud', url: 'https://cloud.example.org', secret: 's'.repeat(16) }
  const given = environments({
    BATON_PROVIDERS: 'docker, cloud',
    BATON_PROVIDER_ALIASES: 'sprites=cloud,old=docker',
    BATON_HTTP_PROVIDERS: JSON.stringify([cloud]),
    BATON_UNSAFE_LOCAL: '1',
    BATON_ENVIRONMENT_CPUS: '0.5',
    BATON_ENVIRONMENT_RETENTION: '0',
    BATON_GATEWAY_URL: 'http://10.0.0.1:8080',
  })
  t.match(given, {
    providers: ['docker', 'cloud'],
    default_provider: 'docker',
    aliases: { sprites: 'cloud', cloudflare_containers: 'docker', old: 'docker' },
    http_providers: [cloud],
    unsafe_local: true,
    gateway_url: 'http://10.0.0.1:8080',
  })
  t.equal(given.limits.cpus, 0.5)
  t.equal(given.retain_ms, 0, 'retained for ever')
  const folder = t.testdir({ 'providers.json': JSON.stringify([cloud]) })
  t.strictSame(environments({ BATON_HTTP_PROVIDERS: `${folder}/providers.json` }).http_providers, [
    cloud,
  ])
})

t.test('the provider docker has a socket, an image, a network and a command', async (t) => {
  const { docker } = environments({
    BATON_DOCKER_SOCKET: '/run/podman/podman.sock',
    BATON_DOCKER_IMAGE: 'localhost/work:1',
    BATON_DOCKER_NETWORK: 'host',
    BATON_DOCKER_COMMAND: 'baton environment-worker',
  })
  t.strictSame(docker, {
    socket: '/run/podman/podman.sock',
    image: 'localhost/work:1',
    network: 'host',
    command: ['baton', 'environment-worker'],
  })
  t.match(faults({ BATON_DOCKER_SOCKET: 'docker.sock' }), [/absolute path/])
  t.match(faults({ BATON_DOCKER_COMMAND: 'baton; rm' }), [/must be a command/])
})

t.test('an HTTP provider needs TLS, except on this machine', async (t) => {
  const secret = 's'.repeat(16)
  const read = (more: object) =>
    faults({ BATON_HTTP_PROVIDERS: JSON.stringify([{ name: 'cloud', secret, ...more }]) })
  for (const url of ['https://a.example.org', 'http://127.0.0.1:9000/x', 'http://[::1]:1'])
    t.strictSame(read({ url, gateway_url: 'https://baton.example.org' }), [], url)
  for (const url of ['http://a.example.org', 'http://127.0.0.1.example.org', 'http://localhost@a'])
    t.match(read({ url }), [/is invalid at \/0\/url/], url)
  t.match(read({ url: 'https://a.example.org', secret: 'with spaces in it' }), [/\/0\/secret/])
})

t.test('a provider is no alias of another one', async (t) => {
  const cloud = [{ name: 'sprites', url: 'https://sprites.example.org', secret: 's'.repeat(16) }]
  const { aliases } = environments({
    BATON_PROVIDERS: 'local,sprites',
    BATON_HTTP_PROVIDERS: JSON.stringify(cloud),
  })
  t.strictSame(aliases, { cloudflare_containers: 'local' })
})

t.test('contradictions are reported with what to change', async (t) => {
  t.match(faults({ BATON_PROVIDERS: 'local,cloud' }), [/cloud, which is not in BATON_HTTP/])
  t.strictSame(
    faults({ BATON_PROVIDERS: 'local,cloud', BATON_ROLES: 'gateway' }),
    [],
    'a gateway needs only the name',
  )
  t.match(faults({ BATON_PROVIDERS: 'worker' }), [/worker.*: remove it/])
  t.match(faults({ BATON_PROVIDER_DEFAULT: 'docker' }), [/docker, which is not in BATON_PROVIDERS/])
  t.match(faults({ BATON_PROVIDER_ALIASES: 'sprites=docker' }), [/BATON_PROVIDER_ALIASES/])
  t.match(faults({ BATON_PROVIDER_ALIASES: 'sprites' }), [/sprites=local/])
  t.match(faults({ BATON_ROLES: 'hosts' }), [/BATON_GATEWAY_URL is missing/])
  t.strictSame(faults({ BATON_ROLES: 'hosts', BATON_PUBLIC_URL: 'https://a.example.org' }), [])
  t.match(faults({ BATON_ENVIRONMENT_CPUS: '0' }), [/processors/])
  t.match(faults({ BATON_UNSAFE_LOCAL: 'perhaps' }), [/on or off/])
})

t.test('faulty HTTP providers are reported without their secrets', async (t) => {
  const one = { name: 'cloud', url: 'https://cloud.example.org', secret: 'top-secret-top-secret' }
  for (const value of [
    [{ ...one, url: 'ftp://cloud' }],
    [{ ...one, name: 'local' }],
    [one, one],
    [{ ...one, more: 1 }],
  ]) {
    const [fault = ''] = faults({ BATON_HTTP_PROVIDERS: JSON.stringify(value) })
    t.match(fault, /^BATON_HTTP_PROVIDERS (is invalid|needs different)/)
    t.notMatch(fault, /top-secret/)
  }
  t.match(faults({ BATON_HTTP_PROVIDERS: '[top-secret' }), [/must be JSON/])
  t.notMatch(faults({ BATON_HTTP_PROVIDERS: '[top-secret' }).join(), /top-secret/)
})
