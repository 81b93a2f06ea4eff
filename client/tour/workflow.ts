/**
 * The two workflows of the tour. They are created once on the server, and updated when their
 * definition here has changed.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Workflow } from '../../protocol/workflows/rows.ts'
import type { Spec } from '../../protocol/workflows/spec.ts'
import type { Client } from '../client.ts'
import { BatonError } from '../errors.ts'

/**
 * Returns the queue for tours of one folder, so that tours of two checkouts do not execute each
 * other's jobs.
 */
export const queueOf = (folder: string): string =>
  `tour-${createHash('sha256').update(folder).digest('hex').slice(0, 8)}`
const retry = { max_attempts: 5 } as const
const action = (action_name: string, parameters: Record<string, string>) =>
  ({ action_name, execution_location: 'worker', parameters }) as const

/** The main workflow: lists the files, waits until they are measured, and reports the totals. */
export const tourSpec: Spec = {
  workflow_type: 'tour',
  input: {
    folder: { type: 'string', required: true, description: 'The folder to measure' },
    parts: { type: 'integer', default: 8, description: 'Parts to measure at the same time' },
  },
  limits: { wall_clock_timeout: '15m' },
  steps: [
    {
      id: 'list',
      kind: 'action',
      retry,
      config: action('tour.list', { folder: '${{ input.folder }}', parts: '${{ input.parts }}' }),
    },
    {
      id: 'measured',
      kind: 'wait_for_event',
      timeout: { duration: '10m', on_timeout: 'fail' },
      config: {
        event_type: 'signal.measured',
        payload_mapping: {
          run_ids: 'event.payload.run_ids',
          files: 'event.payload.files',
          lines: 'event.payload.lines',
        },
      },
    },
    {
      id: 'report',
      kind: 'action',
      retry,
      config: action('tour.report', {
        run_ids: '${{ steps.measured.output.run_ids }}',
        files: '${{ steps.measured.output.files }}',
        lines: '${{ steps.measured.output.lines }}',
      }),
    },
  ],
  output: {
    files: '${{ steps.report.output.files }}',
    lines: '${{ steps.report.output.lines }}',
    sha256: '${{ steps.report.output.sha256 }}',
  },
}
/** The workflow that measures the files of one part. */
export const partSpec: Spec = {
  workflow_type: 'tour-measure',
  input: { folder: { type: 'string', required: true }, files: { type: 'array', required: true } },
  limits: { wall_clock_timeout: '10m' },
  steps: [
    {
      id: 'measure',
      kind: 'action',
      retry,
      config: action('tour.measure', {
        folder: '${{ input.folder }}',
        files: '${{ input.files }}',
      }),
    },
  ],
  output: {
    files: '${{ steps.measure.output.files }}',
    lines: '${{ steps.measure.output.lines }}',
    sums: '${{ steps.measure.output.sums }}',
    worker: '${{ steps.measure.output.worker }}',
  },
}

/**
 * Maximum number of attempts to create or update a workflow while another tour changes it, or the
 * server is unavailable.
 */
const MAX_ATTEMPTS = 6

/**
 * Creates the workflow with this name, or updates it to this spec. Handles are unique across all
 * projects, so the handle contains the name of the project, unless the project is `default`.
 * @throws BatonError if the service refuses a request, or all attempts fail.
 */
export async function ensureWorkflow(client: Client, name: string, spec: Spec): Promise<Workflow> {
  const { project } = client.transport
  const handle = project === 'default' ? name : `${name}-${project}`.slice(0, 64)
  for (let attempt = 1; ; attempt++) {
    try {
      const known = await client.workflow
        .get({ id: handle })
        .catch((error: unknown) => absent(error))
      if (!known)
        return await client.workflow.create({
          name: handle,
          handle,
          spec,
          description: 'Created by the tour',
        })
      if (isDeepStrictEqual(known.spec, spec)) return known
      return await client.workflow.update({
        id: known.id,
        spec,
        expected_version: known.latest_version,
      })
    } catch (error) {
      const again =
        error instanceof BatonError &&
        (error.status === 0 ||
          error.status >= 500 ||
          error.code === 'conflict' ||
          error.code === 'already_exists')
      if (!again || attempt === MAX_ATTEMPTS) throw error
      await client.transport.pause(500 * attempt)
    }
  }
}
const absent = (error: unknown): undefined => {
  if (error instanceof BatonError && error.status === 404) return undefined
  throw error
}
