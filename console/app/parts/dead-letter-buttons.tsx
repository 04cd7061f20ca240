/** Redrive or discard dead letters by their ids: one, or those selected. */
import { path } from "../api/request.ts";
import type { DeadTarget } from "../api/types.ts";
import { useTexts } from "../texts/index.ts";
import { ActButton, type ActRequest } from "./dialog.tsx";
import { useStaff } from "./staff.ts";

export const deadLetterHref = ({ service, table, id }: DeadTarget): string => path`/dead/${service}/${table}/${id}`;

interface Applied {
  readonly applied: readonly string[];
  readonly unchanged: readonly string[];
}

interface ButtonsProps {
  readonly service: string;
  readonly table: string;
  readonly ids: readonly string[];
  readonly isSmall?: boolean;
  readonly onDone?: () => void;
}

interface OneButtonsProps {
  readonly target: DeadTarget;
  /** In a row of a table. */
  readonly isSmall?: boolean;
}

export const DeadLetterButtons = ({ target: { service, table, id }, isSmall = false }: OneButtonsProps) => (
  <DeadLettersButtons service={service} table={table} ids={[id]} isSmall={isSmall} />
);

export function DeadLettersButtons({ service, table, ids, isSmall, onDone }: ButtonsProps) {
  const t = useTexts();
  const { can } = useStaff();
  if (!can("OPERATOR")) return null;
  const request = (act: "redrive" | "discard"): ActRequest<Applied> => ({
    title: t.acts[act](ids.length),
    text: act === "redrive" ? t.redriveMeans : t.discardMeans,
    confirm: t.verbs[act],
    isDangerous: act === "discard",
    toAct: (_values, reason) => ({
      path: `${path`/v1/admin/services/${service}/dead-letters/${table}`}:${act}`,
      body: { ids, reason },
    }),
    done({ applied, unchanged }) {
      onDone?.();
      return t.applied[act](applied.length, unchanged.length);
    },
  });
  return (
    <span class={isSmall ? "button-row together" : "button-row"}>
      <ActButton class={isSmall ? "small" : "primary"} request={request("redrive")} disabled={ids.length === 0}>
        {t.verbs.redrive}
      </ActButton>
      <ActButton class={isSmall ? "small quiet" : ""} request={request("discard")} disabled={ids.length === 0}>
        {t.verbs.discard}
      </ActButton>
    </span>
  );
}
