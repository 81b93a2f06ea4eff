import { Button } from '../../../design/button.tsx'
import type { BulkAction } from './bulk.ts'
import { listText as text } from './text.ts'

/** Returns the menu items of the bulk actions. `about` names the runs that they change. */
export const bulkMenuItems = (act: (action: BulkAction) => () => void, about: string) => [
  { label: `${text.retry}: ${about}`, icon: 'reload' as const, onSelect: act('retry') },
  { label: `${text.resume}: ${about}`, icon: 'start' as const, onSelect: act('resume') },
  {
    label: `${text.cancel}: ${about}`,
    icon: 'stop' as const,
    danger: true,
    onSelect: act('cancel'),
  },
]

/** The number of selected runs, and the actions on them. */
export const Selection = ({
  count,
  act,
  onAll,
  onNone,
}: {
  readonly count: number
  readonly act: (action: BulkAction) => () => void
  readonly onAll: () => void
  readonly onNone: () => void
}) => (
  <div class="row selection" role="region" aria-label={text.actions}>
    <strong role="status">{text.selected(count)}</strong>
    <Button onClick={act('retry')}>{text.retry}</Button>
    <Button onClick={act('resume')}>{text.resume}</Button>
    <Button danger onClick={act('cancel')}>
      {text.cancel}
    </Button>
    <span class="grow" />
    <Button kind="quiet" onClick={onAll}>
      {text.selectAll}
    </Button>
    <Button kind="quiet" onClick={onNone}>
      {text.unselect}
    </Button>
  </div>
)
