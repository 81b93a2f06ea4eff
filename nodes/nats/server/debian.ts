/**
 * Fetches nats-server from the Debian archive, without root privileges and without changes to the
 * machine's package state. apt runs in separate directories, uses the machine's own mirror and
 * checks the archive's signature.
 */
import { execFile } from 'node:child_process'
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { StartFault } from '../../process/fault.ts'
import { versionIn } from './version.ts'

const run = promisify(execFile)
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** A Debian release whose nats-server package is recent enough. */
const RELEASE = 'forky'

/** A Debian package archive. */
export interface Mirror {
  readonly uri: string
  /** Keyring file for verifying the archive's signature; absent when the source specifies none. */
  readonly keyring?: string
}
const mirror = (uri: string, keyring: string | undefined): Mirror => ({
  uri,
  ...(keyring?.startsWith('/') && { keyring }),
})
const isMain = (
  uri: string | undefined,
  suite: string | undefined,
  components: readonly string[],
): uri is string =>
  uri !== undefined &&
  /^https?:\/\//.test(uri) &&
  !/security|backports/.test(`${uri} ${suite ?? ''}`) &&
  components.includes('main')

/** Returns the main archives in a one-line-style list (`deb [signed-by=…] http://… suite main`). */
export const mirrorsOfList = (text: string): Mirror[] =>
  text.split('\n').flatMap((line) => {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)$/.exec(line)
    const [, options = '', uri, suite, components = ''] = match ?? []
    return isMain(uri, suite, components.split('#')[0]?.split(/\s+/) ?? [])
      ? [mirror(uri, /signed-by=(\S+)/i.exec(options)?.[1])]
      : []
  })

/** Returns the main archives in a deb822-style list. */
export const mirrorsOfSources = (text: string): Mirror[] =>
  text.split(/\n[ \t]*\n/).flatMap((stanza) => {
    const fields = new Map<string, string>()
    let last = ''
    for (const line of stanza.split('\n')) {
      if (line.startsWith('#')) continue
      const field = /^([A-Za-z0-9-]+):\s*(.*)$/.exec(line)
      if (field) fields.set((last = (field[1] ?? '').toLowerCase()), field[2] ?? '')
      else if (/^\s/.test(line) && last)
        fields.set(last, `${fields.get(last) ?? ''} ${line.trim()}`)
    }
    const words = (name: string) => (fields.get(name) ?? '').split(/\s+/).filter(Boolean)
    if (!words('types').includes('deb') || fields.get('enabled')?.trim() === 'no') return []
    return words('uris').flatMap((uri) =>
      isMain(uri, words('suites')[0], words('components'))
        ? [mirror(uri, words('signed-by')[0])]
        : [],
    )
  })

/** Returns the main Debian archive that this machine uses; undefined if it uses none. */
async function mirrorOfMachine(): Promise<Mirror | undefined> {
  const files = [
    '/etc/apt/sources.list',
    ...(await readdir('/etc/apt/sources.list.d').catch(() => [])).map((name) =>
      join('/etc/apt/sources.list.d', name),
    ),
  ]
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => '')
    const found = file.endsWith('.sources')
      ? mirrorsOfSources(text)
      : file.endsWith('.list')
        ? mirrorsOfList(text)
        : []
    const debian = found.find(
      ({ uri, keyring }) => /debian/.test(uri) || keyring?.includes('debian-archive'),
    )
    if (debian) return debian
  }
  return undefined
}

/**
 * Fetches the package and stores its binary in `cache` as `nats-server-<version>`.
 * @returns path of the binary.
 * @throws StartFault when the machine has no apt or no Debian archive, or when the package cannot
 *   be downloaded or does not run.
 */
export async function fetchFromDebian(cache: string): Promise<string> {
  const from = await mirrorOfMachine()
  if (!from) throw new StartFault('this machine has no Debian package source')
  const keyring = from.keyring ?? KEYRING
  const work = await mkdtemp(join(tmpdir(), 'baton-apt-'))
  try {
    for (const folder of ['lists/partial', 'archives/partial', 'unpacked'])
      await mkdir(join(work, folder), { recursive: true })
    await writeFile(
      join(work, 'sources.list'),
      `deb [signed-by=${keyring}] ${from.uri} ${RELEASE} main\n`,
    )
    await writeFile(join(work, 'status'), '')
    const options = [
      `Dir::Etc::sourcelist=${join(work, 'sources.list')}`,
      'Dir::Etc::sourceparts=-',
      'Dir::Etc::preferencesparts=-',
      `Dir::State=${work}`,
      `Dir::State::lists=${join(work, 'lists')}`,
      `Dir::State::status=${join(work, 'status')}`,
      `Dir::Cache=${work}`,
      `Dir::Cache::archives=${join(work, 'archives')}`,
      'APT::Sandbox::User=',
      'Acquire::Languages=none',
      'Acquire::Retries=2',
      'APT::Update::Error-Mode=any',
    ].flatMap((option) => ['-o', option])
    const env = { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' }
    const apt = (...args: string[]) =>
      run('apt-get', ['-q', ...options, ...args], { cwd: work, timeout: 180_000, env })
    await apt('update')
    await apt('download', 'nats-server')
    const deb = (await readdir(work)).find((name) => name.endsWith('.deb'))
    if (!deb) throw new StartFault(`the Debian release ${RELEASE} offered no package nats-server`)
    await run('dpkg', ['-x', join(work, deb), join(work, 'unpacked')])
    const binary = join(work, 'unpacked/usr/sbin/nats-server')
    const version = versionIn((await run(binary, ['--version'])).stdout)
    if (!version)
      throw new StartFault('the nats-server of the Debian package does not run on this machine')
    await mkdir(cache, { recursive: true })
    const place = join(cache, `nats-server-${version}`)
    // The binary is copied under a temporary name and renamed, so that no other process finds a
    // partial file.
    const half = `${place}.${process.pid}`
    await copyFile(binary, half)
    await chmod(half, 0o755)
    await rename(half, place)
    return place
  } catch (error) {
    if (error instanceof StartFault) throw error
    const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string }
    if (code === 'ENOENT') throw new StartFault('this machine has no apt-get or dpkg')
    throw new StartFault(
      `apt-get could not download nats-server: ${(stderr?.trim().split('\n').at(-1) || message).slice(0, 300)}`,
    )
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
