/**
 * Defines the states of environments and their tones. Converts tags to and from lines of text, and
 * reads repositories from such lines.
 */
import type { Tone } from '../../design/states.tsx'

/** Tones of the states of environments and of their workers. */
export const stateTones: Readonly<Record<string, Tone>> = {
  provisioning: 'info',
  ready: 'good',
  running: 'accent',
  retained: 'warn',
  destroying: 'warn',
  destroyed: 'neutral',
  failed: 'bad',
  orphaned: 'bad',
  connected: 'good',
  starting: 'info',
  stopped: 'neutral',
}
/** All states, for the filter. */
export const states = [
  'provisioning',
  'ready',
  'running',
  'retained',
  'destroying',
  'destroyed',
  'failed',
  'orphaned',
] as const

/** Reads repositories from lines such as `owner/name push`. */
export const repositoriesOf = (value: string): { full_name: string; push: boolean }[] =>
  value
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([full_name = '', ...rest]) =>
      full_name === '' ? [] : [{ full_name, push: rest.includes('push') }],
    )
