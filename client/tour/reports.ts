/**
 * The fourth part of the tour. A worker measures the largest files of the folder and publishes a
 * report as an artifact. The run stores a table row for each file. An agent finds a row by search
 * and links the report in its answer. Afterwards, even after a failure, the tour deletes the agent,
 * the table and the report. The session is retained for inspection.
 */
import { randomUUID } from 'node:crypto'
import { basename } from 'node:path'
import type { CreateTable, TableRow } from '../../protocol/tables/schema.ts'
import { exactHits, rowTokens, tokensOf } from '../../protocol/tables/search.ts'
import type { Spec } from '../../protocol/workflows/spec.ts'
import { getArtifact } from '../artifacts.ts'
import type { Client } from '../client.ts'
import type { Action } from '../worker/options.ts'
import { Worker } from '../worker.ts'
import { deleteLeftoverAgents } from './agent.ts'
import { brandOf } from './commits.ts'
import { listFiles } from './files.ts'
import { TAGS, TOUR_TIMEOUT_MS } from './loop.ts'
import { measure } from './measure.ts'
import { answerOf, checkEnd, checkTranscript, follow, plain, type Question } from './question.ts'
import { fromTools } from './verify.ts'
import { checkTimelines, watch } from './watch.ts'

/** Number of files in the report, which lists the largest ones. */
const LARGEST = 5
/** Returns the name of the action of one tour, which only the tour's worker executes. */
const actionOf = (tour: string): string => `tour.report.${tour}`
const tableOf = (tour: string): string => `tour_${tour}`

/** Returns the definition of one tour's table. */
export const reportTable = (tour: string): CreateTable => ({
  name: tableOf(tour),
  description: 'The largest files of the folder. Created by the tour and deleted at its end',
  instructions:
    'Search with the path of a file to find its row. The column report is the id of the artifact.',
  schema: {
    identity_column: 'file',
    columns: [
      { name: 'file', type: 'string', required: true, description: 'Path of the file' },
      { name: 'lines', type: 'number', required: true, description: 'Number of its lines' },
      { name: 'report', type: 'string', description: 'Id of the artifact with the report' },
    ],
  },
})
/**
 * Returns the workflow of one tour. It creates the report, and then a table row for each file in
 * the report.
 */
export function reportSpec(tour: string, brand: string): Spec {
  const retry = { max_attempts: 5 }
  const row = {
    id: 'row',
    kind: 'action',
    retry,
    config: {
      action_name: `${brand}.table.upsert`,
      parameters: {
        table: tableOf(tour),
        data: {
          file: '${{ item.file }}',
          lines: '${{ item.lines }}',
          report: '${{ steps.report.output.report.id }}',
        },
      },
    },
  } as const
  return {
    steps: [
      { id: 'report', kind: 'action', retry, config: { action_name: actionOf(tour) } },
      {
        id: 'rows',
        kind: 'for_each',
        config: { items: '${{ steps.report.output.files }}', steps: [row] },
      },
    ],
    output: { report: '${{ steps.report.output.report }}' },
  }
}
/** Returns the worker's action, which publishes the report on the largest files. */
export const reportActions = (tour: string, folder: string): Readonly<Record<string, Action>> => ({
  [actionOf(tour)]: async (_, { signal, publish }) => {
    const files: { readonly file: string; readonly lines: number }[] = []
    for (const file of await largestIn(folder))
      files.push({ file, lines: (await measure(folder, [file], signal)).lines })
    const text = ['# Largest files', '', ...files.map(lineOf), ''].join('\n')
    const report = await publish(Buffer.from(text), {
      name: `tour/${tour}.md`,
      mime: 'text/markdown',
    })
    return { report, files }
  },
})
const lineOf = ({ file, lines }: { readonly file: string; readonly lines: number }): string =>
  `- ${file}: ${lines} lines`
async function largestIn(folder: string): Promise<string[]> {
  const files = await listFiles(folder)
  return [...files]
    .sort((a, b) => b.size - a.size)
    .slice(0, LARGEST)
    .map(({ path }) => path)
}
type ReportRow = Pick<TableRow, 'data'>
/**
 * Returns a path that is suitable as a search text: its row ranks above all other rows. Not every
 * path is suitable, because a search for `b.ts` also finds `a/b.ts`, with the same rank. If no path
 * is suitable, returns the first one.
 */
export function searchable(rows: readonly ReportRow[]): string {
  const hits = (path: string, { data }: ReportRow): number =>
    exactHits(tokensOf(path), rowTokens(data)) ?? -1
  const found = rows.find((row) => {
    const path = String(row.data['file'])
    return rows.every((other) => other === row || hits(path, other) < hits(path, row))
  })
  return String((found ?? rows[0])?.data['file'] ?? '')
}

const questionOf = (path: string): string =>
  `How many lines does ${path} have, and where is the report?`
/** Returns the instructions of the agent for a real model. */
const instructionsOf = (base: string): string =>
  'You answer questions about files from the table of the tour, with your tools. Answer in one ' +
  'sentence with the path, the number of lines in digits, and a Markdown link to the report: ' +
  `${base}, then the value of the column report, then /content.`
/** Returns the script that takes the place of a real model. */
const reportScript = (tour: string, brand: string, base: string): string => `script:
  - when: {text: "How many lines does * have, and*", step: 1}
    say: I will search the table for {{1}}.
    call: {${brand}.table.search: {table: ${tableOf(tour)}, query: "{{1}}"}}
  - when: {after: ${brand}.table.search, error: true}
    say: "The search failed: {{result}}"
  - say: >-
      {{result.items.0.data.file}} has {{result.items.0.data.lines}} lines; see
      [the report](${base}{{result.items.0.data.report}}/content).
`

/**
 * Deletes tables that interrupted tours left behind.
 * @param now Unix milliseconds.
 */
async function tidyTables(at: Client, now: number): Promise<void> {
  const { items } = await at.table.list({ limit: 200 })
  for (const { id, name, created_at } of items)
    if (/^tour_[0-9a-f]{6}$/.test(name) && now - Date.parse(created_at) > TOUR_TIMEOUT_MS)
      await at.table.delete({ id }).catch(() => {})
}

/**
 * Runs this part of the tour. Returns whether all checks passed.
 * @throws BatonError or TranscriptRefused if the service refuses a request; Error on a timeout.
 */
export async function tourOfReports(tour: Question): Promise<boolean> {
  const { at, url, key, folder, shown, signal } = tour
  const { project } = at.transport
  const name = randomUUID().slice(0, 6)
  const brand = await brandOf(at)
  const base = `${url[0]}/v1/projects/${project}/artifacts/`
  await deleteLeftoverAgents(at, Date.now())
  await tidyTables(at, Date.now())
  const worker = new Worker({
    url,
    key,
    project,
    instance: `tour-${name}`,
    name: 'tour',
    concurrency: 2,
    actions: reportActions(name, folder),
  })
  const made: (() => Promise<unknown>)[] = [() => worker.stop()]
  try {
    await worker.start()
    const table = await at.table.create(reportTable(name))
    made.push(() => at.table.delete({ id: table.id }))
    shown.line(`\nNow a table: ${table.name} gets a row for each of the largest files.\n`)
    const { id: run_id } = await at.run.start({ spec: reportSpec(name, brand) })
    made.push(() => deleteArtifacts(at, run_id))
    const watched = await watch(
      at,
      run_id,
      signal,
      () => {},
      (reason) => shown.line(`  (${reason}; resuming the run from here)`),
    )
    const { status, result, error_message = '' } = await at.run.get({ id: run_id })
    if (status !== 'completed') {
      shown.line(`FAILED: run ${run_id} is ${status}: ${error_message}`)
      return false
    }
    const { report } = result as { readonly report: { readonly id: string; readonly name: string } }
    const rows = await at.table.query({
      id: table.id,
      filter: { report: report.id },
      sort: [{ field: 'file' }],
    })
    const path = searchable(rows.items)
    shown.line(`  run ${run_id} has published ${report.name} as ${report.id}`)
    shown.line(`  ${rows.items.length} rows refer to it`)

    const followed = await asked(tour, { name, brand, base, path }, made)
    shown.line('')
    const { lines } = await fromTools(folder, [path])
    const checked = [
      checkEnd(tour, followed),
      await checkReport(tour, report.id, rows.items),
      checkLink(tour, answerOf(followed), { path, lines, link: `${base}${report.id}/content` }),
      await checkTimelines(at, shown, [watched]),
      await checkTranscript(tour, followed.session_id, followed.cursor, followed),
    ]
    return checked.every(Boolean)
  } finally {
    for (const undo of made.reverse()) await undo().catch(() => {})
  }
}

async function asked(
  tour: Question,
  of: {
    readonly name: string
    readonly brand: string
    readonly base: string
    readonly path: string
  },
  made: (() => Promise<unknown>)[],
) {
  const { at, shown } = tour
  const { name, brand, base, path } = of
  const { default_model } = await at.catalog.models()
  const scripted = /\/scripted$/.test(default_model)
  const agent = await at.agent.create({
    name: `Reader ${name}`,
    description: 'Created by the tour and deleted at its end',
    tags: TAGS,
    system_prompt: scripted ? reportScript(name, brand, base) : instructionsOf(base),
  })
  made.push(() => at.agent.delete({ id: agent.id }))
  const ack = await at.agent.invoke({
    agent_ref: { id: agent.id },
    session: { mode: 'new', title: `Tour ${name}` },
    config: {
      toolkits: [{ name: 'read', actions: [`${brand}.table.query`, `${brand}.table.search`] }],
    },
    input: {
      content: [{ type: 'text', text: questionOf(path) }],
      idempotency_key: `tour-${name}`,
    },
  })
  const session_id = ack.session.id
  made.push(() => at.session.cancel({ session_id }))
  shown.line(`  agent ${agent.id} answers a question in ${session_id}\n`)
  const followed = await follow(tour, session_id, ack.turn.id, ack.resume_cursor)
  return { ...followed, session_id, cursor: ack.resume_cursor }
}

/**
 * Deletes the artifacts of a run, including artifacts published by attempts that lost their leases.
 */
async function deleteArtifacts(at: Client, run_id: string): Promise<void> {
  const { items } = await at.artifact.list({ run_id, limit: 100 })
  for (const { id } of items) await at.artifact.delete({ artifact_id: id })
}

/** Downloads the report, and compares it with the rows. */
async function checkReport(
  { at, shown, signal }: Question,
  id: string,
  rows: readonly ReportRow[],
): Promise<boolean> {
  let text = ''
  for await (const chunk of getArtifact(at.transport, id, { signal }))
    text += Buffer.from(chunk).toString()
  const expected = rows.map(({ data }) =>
    lineOf({ file: String(data['file']), lines: Number(data['lines']) }),
  )
  const stated = text.split('\n').filter((line) => line.startsWith('- '))
  const same = expected.sort().join('\n') === stated.sort().join('\n') && stated.length > 0
  shown.line(
    same
      ? `ok  the report, as downloaded, states the same as its ${rows.length} rows`
      : `MISMATCH: the report states ${JSON.stringify(stated)}, the rows ${JSON.stringify(expected)}`,
  )
  return same
}
function checkLink(
  { shown }: Question,
  answer: string,
  { path, lines, link }: { readonly path: string; readonly lines: number; readonly link: string },
): boolean {
  const right =
    answer.includes(basename(path)) &&
    new RegExp(`\\b${lines}\\b`).test(plain(answer)) &&
    answer.includes(link)
  shown.line(
    right
      ? `ok  the answer contains ${path}, its ${lines} lines, as counted by wc -l, and the link to the report`
      : `MISMATCH: wc -l counts ${lines} lines in ${path}, the report is at ${link}, ` +
          `and the answer is ${JSON.stringify(answer)}`,
  )
  return right
}
