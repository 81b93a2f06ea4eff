/**
 * Provides git with the credentials of repositories. Git runs a small helper that requests them
 * from the worker over a socket. The worker requests them from the service.
 *
 * Invariants:
 * G1. Credentials are never written to disk, and never appear in a URL, an argument or a
 *     configuration file.
 * G2. A credential is returned only for the exact host and repository for which the service issued
 *     it. A URL with the same path on another host receives none.
 */
import { rmSync } from 'node:fs'
import { chmod, mkdtemp, writeFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BatonError } from '../../errors.ts'
import { type AskCredential, isSameRepository, namesOf, remoteUrl } from './remote.ts'

/**
 * The helper program. It sends the operation and the input from git to the socket, and prints the
 * answer.
 */
const HELPER = `'use strict'
const socket = require('node:net').connect(require('node:path').join(__dirname, 'socket'))
let answer = ''
socket.on('error', (error) => { process.stderr.write(error.message + '\\n'); process.exit(1) })
socket.on('data', (chunk) => { answer += chunk })
socket.on('end', () => {
  const refused = answer.startsWith('refused ')
  if (refused) process.stderr.write(answer.slice(8) + '\\n')
  process.stdout.write(refused ? 'quit=true\\n' : answer)
})
socket.write(process.argv[2] + '\\n')
process.stdin.pipe(socket)
`
/** Maximum length of the path of a socket in bytes. Node shortens longer paths silently. */
const MAX_SOCKET_PATH = 103
/** Maximum size of a request from git in characters. */
const MAX_REQUEST_LENGTH = 64_000

const PREFIX = 'worker-git-'
/** Returns a folder in which the path of the socket is short enough. */
function temporaryFolder(): string {
  const path = join(tmpdir(), `${PREFIX}XXXXXX`, 'socket')
  return Buffer.byteLength(path) <= MAX_SOCKET_PATH ? tmpdir() : '/tmp'
}

/** Quotes a string for a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
/** Quotes a value for a git configuration file. */
const configured = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`

export class CredentialRelay {
  /** Value of `credential.helper` in the git configuration. */
  readonly helper: string
  /** Path of a git configuration file that replaces /etc/gitconfig and includes it. */
  readonly config: string
  readonly #folder: string
  readonly #server: Server
  readonly #ask: AskCredential
  readonly #log: (line: string) => void
  /** Reasons for refusals by URL. A reason is removed when it is read. At most 100 are kept. */
  readonly #refusals = new Map<string, string>()

  private constructor(folder: string, ask: AskCredential, log: (line: string) => void) {
    this.#folder = folder
    this.#ask = ask
    this.#log = log
    this.config = join(folder, 'gitconfig')
    this.helper = `!${quoted(process.execPath)} ${quoted(join(folder, 'helper.cjs'))}`
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket))
  }
  /** Starts the relay in a private folder. */
  static async start(ask: AskCredential, log: (line: string) => void): Promise<CredentialRelay> {
    const folder = await mkdtemp(join(temporaryFolder(), PREFIX))
    const relay = new CredentialRelay(folder, ask, log)
    await chmod(folder, 0o700)
    await writeFile(join(folder, 'helper.cjs'), HELPER)
    await writeFile(
      relay.config,
      [
        '[include]\n\tpath = /etc/gitconfig',
        // The empty value removes the helpers that /etc/gitconfig defines.
        `[credential]\n\thelper =\n\thelper = ${configured(relay.helper)}\n\tuseHttpPath = true`,
        '[user]\n\tname = Environment worker\n\temail = worker@environment.invalid',
        '[init]\n\tdefaultBranch = main',
        '[advice]\n\tdetachedHead = false\n',
      ].join('\n'),
    )
    await new Promise<void>((done, failed) => {
      relay.#server.once('error', failed)
      relay.#server.listen(join(folder, 'socket'), done)
    })
    return relay
  }
  /**
   * Removes and returns the reason for the latest refusal of a URL; undefined if there is no
   * refusal. A later successful request for the URL does not remove the refusal.
   */
  refusalOf(url: string): string | undefined {
    const refusal = this.#refusals.get(url)
    this.#refusals.delete(url)
    return refusal
  }
  /** Stops the relay and removes its folder. */
  close(): void {
    this.#server.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #serve(socket: Socket): void {
    let request = ''
    socket.setEncoding('utf8')
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: string) => {
      request += chunk
      if (request.length > MAX_REQUEST_LENGTH) socket.destroy()
    })
    socket.on('end', () => {
      this.#answer(request).then(
        (answer) => socket.end(answer),
        (error: Error) => socket.end(`refused ${error.message}`),
      )
    })
  }
  /** Answers a request from git (https://git-scm.com/docs/git-credential#IOFMT). */
  async #answer(request: string): Promise<string> {
    const [operation = '', ...lines] = request.split('\n')
    // Credentials are not stored, so `store` and `erase` have no effect.
    if (operation !== 'get') return ''
    const given = new Map(
      lines.map((line) => {
        const at = line.indexOf('=')
        return [line.slice(0, at), line.slice(at + 1)] as const
      }),
    )
    const url = `${given.get('protocol')}://${given.get('host')}/${given.get('path') ?? ''}`
    let reason = 'the URL contains no repository'
    for (const name of namesOf(url)) {
      try {
        const credential = await this.#ask(name, 'push')
        if (!isSameRepository(remoteUrl(credential, name), url)) {
          reason = `the repository ${name} is on another host`
          continue
        }
        return (
          `username=${credential.username || 'x-access-token'}\npassword=${credential.token}\n` +
          `password_expiry_utc=${Math.floor(Date.parse(credential.expires_at) / 1000)}\n`
        )
      } catch (error) {
        if (!(error instanceof BatonError)) throw error
        reason = `${error.code}: ${error.message}`
        if (error.status !== 403 && error.status !== 404) break
      }
    }
    this.#log(`no credential for ${url}: ${reason}`)
    this.#remember(url, reason)
    return `refused no credential for ${url}: ${reason}`
  }
  #remember(url: string, reason: string): void {
    if (this.#refusals.size >= 100) this.#refusals.clear()
    this.#refusals.set(url, reason)
  }
}
