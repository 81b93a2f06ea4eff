import type { MenuItem } from '../../../../design/overlay.tsx'
import { setQuery } from '../../../../router/router.ts'
import { useCommands } from '../../../../shell/shortcuts.ts'
import { runsText } from '../../text.ts'
import { runText } from '../text.ts'
import type { RunDialog } from './dialog.tsx'
import { actionText as text } from './text.ts'

interface RunState {
  readonly id: string
  readonly status: string
  readonly ended: boolean
  /** Whether the person may operate runs. */
  readonly operates: boolean
}
type RunAction = MenuItem & { readonly id: string; readonly keys?: string }

/** Returns the actions of a run's menu. */
export function runActions(
  { status, ended, operates }: RunState,
  open: (dialog: RunDialog) => void,
): readonly RunAction[] {
  const action = (
    kind: 'resume' | 'complete' | 'again' | 'compare',
    more: Partial<RunAction> = {},
  ) => ({
    id: kind,
    label: text[kind],
    ...more,
    onSelect: () => open({ kind }),
  })
  const signal: RunAction = {
    id: 'signal',
    label: text.signal,
    icon: 'send',
    keys: 's',
    onSelect: () => open({ kind: 'signal', name: '' }),
  }
  return [
    ...(operates && status === 'suspended' ? [action('resume'), action('complete')] : []),
    ...(operates && !ended ? [signal] : []),
    ...(operates ? [action('again', { icon: 'start' })] : []),
    action('compare', { icon: 'copy' }),
  ]
}

/** Offers the actions and tabs of a run in the palette and by their keys. */
export function useRunCommands(
  { id, status, ended, operates }: RunState,
  actions: readonly RunAction[],
  open: (dialog: RunDialog) => void,
): void {
  const tabNames = [
    runText.timeline,
    runText.graph,
    runText.events,
    runText.output,
    runText.jobs,
    runText.details,
  ]
  useCommands(
    [
      ...actions.map(({ id: action, label, icon, keys, onSelect }) => ({
        id: `run-${action}`,
        label,
        ...(icon && { icon }),
        ...(keys && { keys }),
        run: () => void onSelect?.(),
      })),
      ...(operates && status === 'failed'
        ? [
            {
              id: 'run-retry',
              label: text.retry,
              keys: 'r',
              run: () => open({ kind: 'retry', from: '' }),
            },
          ]
        : []),
      ...(operates && !ended
        ? [{ id: 'run-cancel', label: text.cancel, run: () => open({ kind: 'cancel' }) }]
        : []),
      ...['', 'graph', 'events', 'output', 'jobs', 'details'].map((tab, index) => ({
        id: `run-tab-${tab}`,
        label: `${runsText.run}: ${tabNames[index]}`,
        keys: String(index + 1),
        run: () => setQuery({ tab }),
      })),
    ],
    [id, status, operates],
  )
}
