/** Every route of points. */
import type { HttpApp } from "@todoke/http";
import type { Deps } from "../deps.ts";

export function pointsRoutes(_app: HttpApp, _deps: Deps): void {}
