/**
 * The actions of the tour's workers. They measure only the folder of their own tour, and fail if a
 * job specifies another folder.
 */
import type { Client } from '../client.ts'
import type { Action, Parameters } from '../worker/options.ts'
import { listFiles, split } from './files.ts'
import { combineMeasurements, digestOf, type Measured, measure } from './measure.ts'

/**
 * Creates the actions of one worker.
 * @param folder the only folder that the actions may read.
 */
export function tourActions(
  client: Client,
  folder: string,
  worker: string,
): Readonly<Record<string, Action>> {
  const own = ({ folder: asked }: Parameters): void => {
    if (asked !== folder) throw new Error(`this worker measures ${folder}, not ${String(asked)}`)
  }
  return {
    'tour.list': async (parameters) => {
      own(parameters)
      const files = await listFiles(folder)
      if (files.length === 0) throw new Error(`there are no files in ${folder}`)
      return {
        files: files.length,
        bytes: files.reduce((sum, { size }) => sum + size, 0),
        parts: split(files, Number(parameters['parts'])),
      }
    },
    'tour.measure': async (parameters, { signal }) => {
      own(parameters)
      return { ...(await measure(folder, listOf(parameters['files']), signal)), worker }
    },
    'tour.report': async (parameters) => {
      const runs = await Promise.all(
        listOf(parameters['run_ids']).map((id) => client.run.get({ id })),
      )
      const whole = combineMeasurements(runs.map(({ result }) => result as unknown as Measured))
      for (const name of ['files', 'lines'] as const)
        if (Number(parameters[name]) !== whole[name])
          throw new Error(
            `the signal says ${String(parameters[name])} ${name}, the runs say ${whole[name]}`,
          )
      return { files: whole.files, lines: whole.lines, sha256: digestOf(whole.sums) }
    },
  }
}

/** Reads a list that a template may have rendered as text. */
const listOf = (value: unknown): string[] =>
  typeof value === 'string' ? (JSON.parse(value) as string[]) : (value as string[])
