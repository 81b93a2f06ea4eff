/** The choice of the columns that the grid of a table shows. It is part of the URL. */
import type { Column } from '../../../../protocol/tables/schema.ts'
import { Button } from '../../../design/button.tsx'
import { Checkbox } from '../../../design/field.tsx'
import { Dialog } from '../../../design/overlay.tsx'
import { setQuery } from '../../../router/router.ts'
import { tablesText as text } from '../text.ts'

/**
 * Shows the dialog. `chosen` contains the visible columns. The only visible column cannot be
 * hidden.
 */
export function ColumnsDialog({
  columns,
  chosen,
  onClose,
}: {
  readonly columns: readonly Column[]
  readonly chosen: readonly Column[]
  readonly onClose: () => void
}) {
  const choose = (name: string, on: boolean): void => {
    const shown = columns.filter((one) => (one.name === name ? on : chosen.includes(one)))
    setQuery({ columns: shown.length === columns.length ? '' : namesOf(shown) })
  }
  return (
    <Dialog title={text.columns} onClose={onClose}>
      <p class="soft">{text.columnsHint}</p>
      <div class="stack close">
        {columns.map((column) => (
          <Checkbox
            key={column.name}
            label={column.name}
            checked={chosen.includes(column)}
            disabled={chosen.length === 1 && chosen.includes(column)}
            onChecked={(on) => choose(column.name, on)}
          />
        ))}
      </div>
      <div class="actions">
        <Button kind="primary" onClick={onClose}>
          {text.close}
        </Button>
      </div>
    </Dialog>
  )
}
const namesOf = (columns: readonly Column[]): string => columns.map(({ name }) => name).join(',')
