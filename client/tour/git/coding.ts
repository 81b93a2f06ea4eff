/**
 * The fifth part of the tour: an agent with a workspace. The tour serves two git repositories. The
 * agent clones the first, runs its failing test and corrects a file. It then pushes a branch with a
 * credential from the service, and publishes the change as an artifact. The second repository is
 * declared without push access, so a push to it is refused. Afterwards, even after a failure, the
 * tour deletes everything except the session.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Environment } from '../../../protocol/environments/schema.ts'
import { getArtifact } from '../../artifacts.ts'
import { TAGS } from '../loop.ts'
import { checkEnd, checkTranscript, follow, type Question } from '../question.ts'
import { git, hasGit } from '../repository.ts'
import { type GitServer, startGitServer } from './server.ts'

const exec = promisify(execFile)
/** The repositories: one that the agent may change, and one that it may only read. */
const OPEN = 'tour/sums'
const CLOSED = 'tour/terms'
/** Milliseconds within which a host must prepare the environment. */
const PREPARE_MS = 15_000
/** Milliseconds between two checks of the state of the environment. */
const LOOK_MS = 200

/** The program with a mistake, its test, and the correction. */
const program = {
  wrong: '#!/bin/sh\n# Adds two numbers.\necho $(($1 - $2))\n',
  right: '#!/bin/sh\n# Adds two numbers.\necho $(($1 + $2))\n',
  test: '#!/bin/sh\nresult=$(sh sum.sh 2 3)\n[ "$result" = 5 ] || { echo "2 + 3 is $result"; exit 1; }\necho passed\n',
}
const AUTHOR = 'git config user.name Tour && git config user.email tour@example.org'
const commands = {
  test: 'cd sums && sh test.sh',
  push:
    `cd sums && sh test.sh && ${AUTHOR} && git checkout -q -b fix && ` +
    'git commit -q -a -m "Add instead of subtracting" && git push -q origin fix && ' +
    'git diff main fix > ../fix.diff && echo pushed',
  refused: `cd terms && ${AUTHOR} && git commit -q --allow-empty -m "Try" && git push -q origin HEAD:try`,
}
const tools = [
  'environment.bash',
  'environment.files.read',
  'environment.files.write',
  'environment.git.clone',
  'environment.artifact.publish',
]

/** Returns the script that takes the place of a real model. */
const scriptOf = (name: string): string => `script:
  - when: {step: 1}
    say: I will clone ${OPEN} and run its test.
    call: {environment.git.clone: {repo_full_name: ${OPEN}}}
  - when: {step: 2, error: true}
    say: "The clone failed: {{result}}"
  - when: {step: 2}
    call: {environment.bash: {command: ${JSON.stringify(commands.test)}}}
  - when: {step: 3}
    say: "The test says: {{result.stdout}}"
    call: {environment.files.read: {path: sums/sum.sh}}
  - when: {step: 4}
    say: It subtracts. I will correct it.
    call: {environment.files.write: {path: sums/sum.sh, content: ${JSON.stringify(program.right)}}}
  - when: {step: 5}
    say: I will run the test again, and push a branch.
    call: {environment.bash: {command: ${JSON.stringify(commands.push)}}}
  - when: {step: 6}
    call: {environment.artifact.publish: {path: fix.diff, name: tour/${name}.diff, mime: text/x-diff}}
  - when: {step: 7}
    call: {environment.git.clone: {repo_full_name: ${CLOSED}}}
  - when: {step: 8}
    say: I will try to push to ${CLOSED}, too.
    call: {environment.bash: {command: ${JSON.stringify(commands.refused)}}}
  - when: {step: 9}
    say: The branch fix of ${OPEN} is pushed. ${CLOSED} refused the push with exit code {{result.exit_code}}.
`
const TASK =
  `Correct the program in ${OPEN}, so that its test passes: clone it, run sh test.sh, correct the ` +
  `file, push a branch named fix, and publish the diff of main and fix as an artifact. Then clone ` +
  `${CLOSED} and try to push a branch named try; that is expected to be refused.`

/** Creates a repository with an initial commit on the server. */
async function fill(
  server: GitServer,
  folder: string,
  full_name: string,
  push: string,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const bare = await server.add(full_name, { read: `read-${push}`, push })
  const work = join(folder, full_name.replace('/', '-'))
  await mkdir(work)
  await git(work, 'init', '--quiet', '--template=')
  for (const [name, text] of Object.entries(files)) await writeFile(join(work, name), text)
  await git(work, 'add', '--all')
  await git(work, 'commit', '--quiet', '--message', 'Begin')
  await git(work, 'push', '--quiet', bare, 'HEAD:refs/heads/main')
  return bare
}

type Undo = () => Promise<unknown>
/**
 * Runs this part of the tour. Returns whether all checks passed. If git is missing, the service
 * refuses the repository host, or no host prepares the environment, the part is skipped and true is
 * returned.
 * @throws BatonError or TranscriptRefused if the service refuses a request; Error on a timeout.
 */
export async function tourOfCoding(tour: Question): Promise<boolean> {
  const { shown } = tour
  if (!(await hasGit())) {
    shown.line('\nThe part with a workspace is skipped, because git is not installed.')
    return true
  }
  const folder = await mkdtemp(join(tmpdir(), 'baton-tour-'))
  const made: Undo[] = [() => rm(folder, { recursive: true, force: true })]
  try {
    return await code(tour, folder, made)
  } finally {
    for (const undo of made.reverse()) await undo().catch(() => {})
  }
}

async function code(tour: Question, folder: string, made: Undo[]): Promise<boolean> {
  const { at, shown } = tour
  const name = randomUUID().slice(0, 6)
  const server = await startGitServer(join(folder, 'served'))
  made.push(() => server.close())
  const host = `tour-${name}`
  const [push, secret] = [randomUUID(), randomUUID()]
  const open = await fill(server, folder, OPEN, push, {
    'sum.sh': program.wrong,
    'test.sh': program.test,
  })
  const closed = await fill(server, folder, CLOSED, push, { 'README.md': `${secret}\n` })
  const hosted = await at.repository_host
    .put({
      host_name: host,
      kind: 'token',
      url: server.url,
      read_token: `read-${push}`,
      push_token: push,
    })
    .catch((error: unknown) => String((error as Error).message))
  if (typeof hosted === 'string') {
    shown.line(
      `\nThe part with a workspace is skipped: ${hosted} To allow it, start the service with ` +
        'BATON_OUTBOUND_ALLOW=127.0.0.1/32.',
    )
    return true
  }
  made.push(() => at.repository_host.delete({ host_name: host }))
  const { default_model } = await at.catalog.models()
  const agent = await at.agent.create({
    name: `Coder ${name}`,
    description: 'Created by the tour and deleted at its end',
    tags: TAGS,
    system_prompt: /\/scripted$/.test(default_model)
      ? scriptOf(name)
      : 'You correct programs in git repositories, with your tools.',
  })
  made.push(() => at.agent.delete({ id: agent.id }))
  const environment = await at.environment.create({
    mode: 'agent',
    agent_id: agent.id,
    repositories: [
      { full_name: OPEN, push: true, provider: host },
      { full_name: CLOSED, push: false, provider: host },
    ],
  })
  const environment_id = environment.id
  made.push(() => at.environment.delete({ environment_id }))
  shown.line(`\nNow a workspace: agent ${agent.id} works in ${environment_id}.\n`)
  const ready = await prepared(tour, environment_id)
  if (typeof ready === 'string') {
    shown.line(`This part is skipped: ${ready}`)
    return true
  }
  const followed = await work(tour, agent.id, name, made)
  shown.line('')
  const checked = [
    checkEnd(tour, followed),
    await checkPush(tour, server, open, closed),
    await checkDiff(tour, open, name, made),
    await checkTranscript(tour, followed.session_id, followed.cursor, followed),
  ]
  return checked.every(Boolean)
}

/**
 * Waits until the environment is ready. Returns the environment, or the reason why it is not ready.
 */
async function prepared(
  { at, signal }: Question,
  environment_id: string,
): Promise<Environment | string> {
  const until = Date.now() + PREPARE_MS
  for (;;) {
    signal.throwIfAborted()
    const found = await at.environment.get({ environment_id })
    if (found.status === 'ready') return found
    if (found.status === 'failed') return found.error ?? 'the environment could not be prepared.'
    if (Date.now() > until)
      return (
        'no host prepared the environment. Install bubblewrap (Debian: apt install bubblewrap) and ' +
        'restart the service, or start it with BATON_UNSAFE_LOCAL=on on a machine of your own.'
      )
    await new Promise((again) => setTimeout(again, LOOK_MS))
  }
}

async function work(tour: Question, agent_id: string, name: string, made: Undo[]) {
  const { at } = tour
  const ack = await at.agent.invoke({
    agent_ref: { id: agent_id },
    session: { mode: 'new', title: `Tour ${name}` },
    config: { toolkits: [{ name: 'workspace', actions: tools }] },
    input: { content: [{ type: 'text', text: TASK }], idempotency_key: `tour-${name}` },
  })
  const session_id = ack.session.id
  made.push(() => at.session.cancel({ session_id }))
  const followed = await follow(tour, session_id, ack.turn.id, ack.resume_cursor)
  return { ...followed, session_id, cursor: ack.resume_cursor }
}

const read = async (bare: string, ...args: string[]): Promise<string> =>
  (await exec('git', [`--git-dir=${bare}`, ...args]).catch(() => ({ stdout: '' }))).stdout

/**
 * Checks that the branch was pushed to the first repository, and that the push to the second one
 * was refused and changed nothing.
 */
async function checkPush(
  { shown }: Question,
  server: GitServer,
  open: string,
  closed: string,
): Promise<boolean> {
  const pushed = (await read(open, 'show', 'fix:sum.sh')) === program.right
  const branches = (await read(closed, 'branch', '--format=%(refname:short)')).trim()
  const refused = server.requests.some(
    ({ repository, service, status }) =>
      repository === CLOSED && service === 'git-receive-pack' && status === 403,
  )
  shown.line(
    pushed
      ? `ok  the branch fix of ${OPEN} has the corrected file`
      : `MISMATCH: the branch fix of ${OPEN} does not have the corrected file`,
  )
  shown.line(
    branches === 'main' && refused
      ? `ok  ${CLOSED} is read-only for the workspace: the push was refused with 403`
      : `MISMATCH: ${CLOSED} has the branches ${branches}; a push was ${refused ? '' : 'not '}refused`,
  )
  return pushed && branches === 'main' && refused
}

/** Compares the published diff with that of the repository. */
async function checkDiff(
  { at, shown, signal }: Question,
  bare: string,
  name: string,
  made: Undo[],
): Promise<boolean> {
  const { items } = await at.artifact.list({ limit: 100 })
  const artifact = items.find((one) => one.name === `tour/${name}.diff`)
  let text = ''
  if (artifact) {
    made.push(() => at.artifact.delete({ artifact_id: artifact.id }))
    for await (const chunk of getArtifact(at.transport, artifact.id, { signal }))
      text += Buffer.from(chunk).toString()
  }
  const expected = await read(bare, 'diff', 'main', 'fix')
  const same = text !== '' && text === expected
  shown.line(
    same
      ? `ok  the artifact ${artifact?.name} is the diff of both branches`
      : `MISMATCH: the published diff is ${JSON.stringify(text)} instead of ${JSON.stringify(expected)}`,
  )
  return same
}
